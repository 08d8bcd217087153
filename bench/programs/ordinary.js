// usage: node ordinary.js SECONDS: parse and print JSON, sort, count words and match patterns for so long.
"use strict";

function* numbers(state) {
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state;
  }
}

const random = numbers(12345);
const next = (limit) => random.next().value % limit;

function record(depth) {
  const made = { id: next(1000000), name: `name ${next(500)}`, tags: Array.from({ length: 4 }, () => `tag${next(50)}`) };
  if (depth > 0) {
    made.children = [record(depth - 1), record(depth - 1)];
  }
  return made;
}

function visit(node, counts) {
  for (const tag of node.tags) {
    counts.set(tag, (counts.get(tag) || 0) + 1);
  }
  return (node.children || []).reduce((sum, child) => sum + visit(child, counts), node.id);
}

class Index {
  constructor() {
    this.words = new Map();
  }

  add(text) {
    for (const [word] of text.matchAll(/[a-z]+\d*/g)) {
      this.words.set(word, (this.words.get(word) || 0) + 1);
    }
  }

  top(count) {
    return [...this.words.entries()].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, count);
  }
}

const end = Date.now() + 1000 * Number(process.argv[2] || 1);
const index = new Index();
let total = 0;
while (Date.now() < end) {
  const text = JSON.stringify(record(6));
  const counts = new Map();
  total += visit(JSON.parse(text), counts);
  index.add(text);
  total += index.top(10).length;
}
console.log(total);
