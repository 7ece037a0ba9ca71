package github

import (
	"context"
	"time"
)

// latest brings the newest of many words to where writing is slow. Between two of them there is a pause; what was put in meanwhile
// and overtaken is dropped.
type latest struct{ words chan string }

func newLatest() latest { return latest{make(chan string, 1)} }

// put never blocks.
func (l latest) put(word string) {
	for {
		select {
		case l.words <- word:
			return
		default:
		}
		select {
		case <-l.words:
		default:
		}
	}
}

// run writes until stop ends. A write that has begun is waited for.
func (l latest) run(stop context.Context, pause time.Duration, write func(string)) {
	last := ""
	for {
		select {
		case <-stop.Done():
			return
		case word := <-l.words:
			if word == last {
				continue
			}
			write(word)
			last = word
		}
		select {
		case <-stop.Done():
			return
		case <-time.After(pause):
		}
	}
}
