package main

import (
	"bufio"
	"io"
	"iter"
	"strings"
)

// sent is a server-sent event. One without data is a sign of life.
type sent struct{ id, name, data string }

// stream reads server-sent events until the connection ends, well or not: what came last tells which.
func stream(r io.Reader) iter.Seq[sent] {
	return func(yield func(sent) bool) {
		var e sent
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimRight(line, "\r\n")
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if line != "" { // a comment
					if !yield(sent{}) {
						return
					}
					continue
				}
				if e.data != "" && !yield(e) {
					return
				}
				e = sent{}
			}
		}
	}
}
