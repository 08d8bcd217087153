// usage: ordinary SECONDS: count words, sort and fold numbers in four threads, as Rust programs do, for so long.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn words(random: &mut Random) -> Vec<String> {
    (0..40).map(|_| format!("word{:x}-{}", random.next() % 4096, random.next() % 7)).collect()
}

fn group(words: &[String]) -> BTreeMap<usize, Vec<&str>> {
    words.iter().fold(BTreeMap::new(), |mut groups, word| {
        groups.entry(word.len()).or_insert_with(Vec::new).push(word.trim_start_matches("word"));
        groups
    })
}

#[derive(Debug)]
enum Tree {
    Leaf(u64),
    Fork(Box<Tree>, Box<Tree>),
}

fn grow(random: &mut Random, depth: u32) -> Tree {
    if depth == 0 {
        return Tree::Leaf(random.next() % 100);
    }
    Tree::Fork(Box::new(grow(random, depth - 1)), Box::new(grow(random, depth - 1)))
}

fn sum(tree: &Tree) -> u64 {
    match tree {
        Tree::Leaf(value) => *value,
        Tree::Fork(left, right) => sum(left) + sum(right),
    }
}

fn work(shared: Arc<Mutex<HashMap<String, u64>>>, end: Instant, seed: u64) -> u64 {
    let mut random = Random(88172645463325252 + seed * 7919);
    let mut total = 0;
    while Instant::now() < end {
        let mut list = words(&mut random);
        list.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        total += group(&list).values().map(|group| group.iter().map(|word| word.len() as u64).sum::<u64>()).sum::<u64>();
        for word in list {
            *shared.lock().unwrap().entry(word).or_insert(0) += 1;
        }
        let tree = grow(&mut random, 7);
        total += sum(&tree) + format!("{:?}", tree).len() as u64;
    }
    total
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let shared = Arc::new(Mutex::new(HashMap::new()));
    let threads: Vec<_> = (0..4).map(|seed| (seed, Arc::clone(&shared))).map(|(seed, map)| thread::spawn(move || work(map, end, seed))).collect();
    println!("{}", threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>());
}
