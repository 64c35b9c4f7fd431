// A goroutine that calls C. Build it position-independent and stripped: only the linker's own tables are left then.
package main

// static unsigned long __attribute__((noinline)) burn(unsigned long rounds) {
//   volatile unsigned long sum = 0;
//   while (rounds--) sum += rounds * rounds;
//   return sum;
// }
import "C"

//go:noinline
func calls() { C.burn(1000000) }

func main() {
	done := make(chan bool)
	go func() {
		for i := 0; i < 400; i++ {
			calls()
		}
		done <- true
	}()
	<-done
}
