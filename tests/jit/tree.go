// Makes garbage and sorts, so that the runtime works on its own stacks; one goroutine has a frame of 16 KB. Usage: tree SECONDS
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"
)

type node struct{ l, r *node }

//go:noinline
func build(d int) *node {
	if d == 0 {
		return &node{}
	}
	return &node{build(d - 1), build(d - 1)}
}

//go:noinline
func count(n *node) int {
	if n.l == nil {
		return 1
	}
	return count(n.l) + count(n.r)
}

func worker(end time.Time, out chan int) {
	s := 0
	for time.Now().Before(end) {
		s += count(build(10))
		v := make([]int, 2000)
		for i := range v {
			v[i] = (i * 7919) % 2003
		}
		sort.Ints(v)
		out <- s
	}
	close(out)
}

func main() {
	secs, _ := strconv.ParseFloat(os.Args[1], 64)
	end := time.Now().Add(time.Duration(secs * 1e9))
	out := make(chan int)
	go worker(end, out)
	t := 0
	for v := range out {
		t += v
	}
	fmt.Println(t > 0)
}
