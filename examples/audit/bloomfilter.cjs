// bloomfilter (npm), for an audit: NODE_PATH=node_modules node bloomfilter.cjs CAPACITY RATE
const library = require.resolve('bloomfilter');  // an ES module, which import() does not find on NODE_PATH
import(library).then(({ BloomFilter }) => {
  const filter = BloomFilter.withTargetError(Number(process.argv[2]), Number(process.argv[3]));
  require('./answer.cjs').answer((key) => filter.add(key), (key) => filter.test(key));
});
