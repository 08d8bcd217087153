// Iterators and closures that inline into each other, generics, a panic that is caught. Usage: inlining MILLISECONDS
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[inline(always)]
fn scramble(x: u64) -> u64 {
    let x = x ^ (x << 13);
    x ^ (x >> 7)
}

#[inline(never)]
fn sum_of(values: &[u64]) -> u64 {
    values.iter().map(|v| (0..50).fold(*v, |a, b| scramble(a + b))).filter(|v| v % 3 != 0).fold(0, |a, b| a ^ b)
}

#[inline(never)]
fn recurse<T: Copy + Into<u64>>(depth: u32, seed: T, values: &[u64]) -> u64 {
    if depth == 0 {
        return sum_of(values);
    }
    recurse(depth - 1, seed, values).wrapping_add(seed.into())
}

#[inline(never)]
fn maps(seed: u64) -> u64 {
    let mut map = BTreeMap::new();
    for i in 0..200u64 {
        map.insert(scramble(i + seed), format!("{i}"));
    }
    map.values().map(|v| v.len() as u64).sum()
}

fn main() {
    let milliseconds = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(300);
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let values: Vec<u64> = (0..500).collect();
    let mut total = 0u64;
    let worker = std::thread::spawn(move || {
        let values: Vec<u64> = (0..500).collect();
        let mut total = 0u64;
        while Instant::now() < end {
            total = total.wrapping_add(recurse(10, 7u32, &values));
        }
        total
    });
    while Instant::now() < end {
        total = total.wrapping_add(recurse(24, 3u64, &values)).wrapping_add(maps(total));
    }
    println!("{}", total ^ worker.join().unwrap());
}
