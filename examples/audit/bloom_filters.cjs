// bloom-filters (npm), for an audit: NODE_PATH=node_modules node bloom_filters.cjs CAPACITY RATE
const { BloomFilter } = require('bloom-filters');
const filter = BloomFilter.create(Number(process.argv[2]), Number(process.argv[3]));
require('./answer.cjs').answer((key) => filter.add(key), (key) => filter.has(key));
