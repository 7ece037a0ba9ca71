package fakecli

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// Number is the text of the n-th line that "numbers" writes, counted from 1.
func Number(n int) string { return fmt.Sprintf("line %d of many\n", n) }

// numbers writes bursts of up to a hundred lines with pauses of up to 50 ms, as tools do that print while they work.
func numbers(out io.Writer, count int) error {
	for n := 0; n < count; {
		var burst strings.Builder
		for range min(1+rand.IntN(100), count-n) { //nolint:gosec // G404: this is no secret
			n++
			fmt.Fprintf(&burst, textLine, Number(n))
		}
		if _, err := io.WriteString(out, burst.String()); err != nil {
			return err
		}
		<-time.After(rand.N(50 * time.Millisecond)) //nolint:gosec // G404: this is no secret
	}
	_, err := io.WriteString(out, endLines)
	return err
}

// speak writes words as fast as a model does, 20 a second.
func speak(out io.Writer, words int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n := range words {
		<-tick.C
		if _, err := fmt.Fprintf(out, textLine, Number(n+1)+" "); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, endLines)
	return err
}
