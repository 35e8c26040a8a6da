// Answers the lines of standard input, for the adapters of JavaScript libraries.
exports.answer = (add, has) => {
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const key = line.slice(4);
    if (line.startsWith('has')) return process.stdout.write(has(key) ? '1\n' : '0\n');
    const isNew = !has(key);
    add(key);
    process.stdout.write(isNew ? '1\n' : '0\n');
  });
};
