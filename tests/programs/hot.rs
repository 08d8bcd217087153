// Rust with generics, closures, traits and the standard library's sort and maps. usage: hot [SECONDS]
use std::collections::HashMap;
use std::time::Instant;

trait Shape {
    fn area(&self, scale: f64) -> f64;
}
struct Square(f64);
struct Circle<T>(T);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, scale: f64) -> f64 {
        (0..200).fold(self.0, |sum, i| sum + scale / f64::from(i + 1))
    }
}
impl<T: Copy + Into<f64>> Shape for Circle<T> {
    #[inline(never)]
    fn area(&self, scale: f64) -> f64 {
        (0..300).map(|i| self.0.into() * scale / f64::from(i + 3)).sum()
    }
}

#[inline(never)]
fn apply<F: Fn(u64) -> u64>(step: F, times: u64) -> u64 {
    (0..times).fold(0, |sum, i| step(sum ^ i))
}

#[inline(never)]
fn count_words(turn: u64) -> usize {
    let mut words: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..40 {
        words.entry(format!("word-{}", (turn * 7 + i) % 31)).or_default().push(i);
    }
    let mut keys: Vec<_> = words.into_iter().collect();
    keys.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    keys.len()
}

#[inline(never)]
fn turn(n: u64) -> u64 {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle(3u32)), Box::new(Circle(1.5f32))];
    let area: f64 = shapes.iter().map(|shape| shape.area(n as f64)).sum();
    apply(|x| x.wrapping_mul(31).rotate_left(7) ^ n, 2000) + count_words(n) as u64 + area as u64
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.3);
    let start = Instant::now();
    let (mut sum, mut n) = (0u64, 0);
    while start.elapsed().as_secs_f64() < seconds {
        sum = sum.wrapping_add(turn(n));
        n += 1;
    }
    std::hint::black_box(sum);
}
