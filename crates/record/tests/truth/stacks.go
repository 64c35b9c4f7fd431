// Goroutines that keep Go's runtime busy on the threads' own stacks: channels, allocation, growing stacks, clocks.
package main

import (
	"sync"
	"syscall"
	"time"
)

var sink []byte

//go:noinline
func hot(rounds int) (sum int) {
	for i := 0; i < rounds; i++ {
		sum += i * i ^ sum>>3
	}
	return sum
}

//go:noinline
func allocates(rounds int) {
	for i := 0; i < rounds; i++ {
		sink = make([]byte, 64+i%2048)
	}
}

//go:noinline
func grows(depth int) int {
	var frame [64]int
	frame[depth%64] = depth
	if depth == 0 {
		return 0
	}
	return grows(depth-1) + frame[depth%64]
}

//go:noinline
func talks(out chan<- int, in <-chan int, rounds int) {
	for i := 0; i < rounds; i++ {
		out <- i
		<-in
	}
}

// CPU time of the program, which a busy machine does not change.
func used() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	var all sync.WaitGroup
	repeat := func(work func()) {
		all.Add(1)
		go func() {
			defer all.Done()
			for used() < time.Second {
				work()
			}
		}()
	}
	there, back := make(chan int), make(chan int)
	go func() {
		for number := range there {
			back <- number
		}
	}()
	repeat(func() { hot(20000) })
	repeat(func() { allocates(2000) })
	repeat(func() { talks(there, back, 200) })
	repeat(func() {
		done := make(chan int)
		go func() { done <- grows(50) }()
		<-done
	})
	all.Wait()
}
