package main

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"
)

// sent is a server-sent event.
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
			field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if strings.TrimRight(line, "\r\n") != "" {
					continue // a comment
				}
				if e.data != "" && !yield(e) {
					return
				}
				e = sent{}
			}
		}
	}
}

// plain takes out what would make a terminal do something: the words come from agents, and from whoever writes to them.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// printer keeps pieces of text and lines about them apart.
type printer struct {
	text, side io.Writer // where the text goes, and where the lines beside it go
	mid        bool      // in the middle of a line of text
	said       bool      // some text at all
}

func (p *printer) piece(s string) {
	if s = plain(s); s == "" {
		return
	}
	say(p.text, "%s", s)
	p.said, p.mid = true, !strings.HasSuffix(s, "\n")
}

func (p *printer) line(format string, args ...any) {
	p.newline()
	say(p.side, "%s\n", strings.TrimRight(plain(fmt.Sprintf(format, args...)), "\n"))
}

func (p *printer) newline() {
	if p.mid {
		say(p.text, "\n")
	}
	p.mid = false
}
