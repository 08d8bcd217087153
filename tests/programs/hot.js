// node with --perf-basic-prof: interpreted, baseline and optimized code. usage: node --perf-basic-prof hot.js [SECONDS]
'use strict';

const seconds = Number(process.argv[2] || 0.5);

class Matrix {
    constructor(size) { this.cells = Array.from({ length: size * size }, (_, i) => i % 7); this.size = size; }
    multiply(other) {
        const out = new Matrix(this.size);
        for (let row = 0; row < this.size; row++)
            for (let column = 0; column < this.size; column++) {
                let sum = 0;
                for (let k = 0; k < this.size; k++) sum += this.cells[row * this.size + k] * other.cells[k * this.size + column];
                out.cells[row * this.size + column] = sum;
            }
        return out;
    }
}

const fibonacci = n => n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);

function words(turn) {
    return Array.from({ length: 200 }, (_, i) => `word ${(turn * 31 + i) % 97}`)
        .sort((a, b) => a < b ? 1 : -1).join(';').replace(/word (\d+)/g, (_, digits) => digits + digits).length;
}

const start = Date.now();
let sum = 0;
for (let turn = 0; Date.now() - start < seconds * 1000; turn++) {
    sum += new Matrix(12).multiply(new Matrix(12)).cells[5] + fibonacci(12) + words(turn);
}
if (sum === 0) console.log(sum);
