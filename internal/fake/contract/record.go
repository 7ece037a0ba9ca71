package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Call is a call that a test made to a fake.
type Call struct {
	Name string         // of the operation, as in Extract.Operations, or a method of Slack
	Test string         // package and test that made the fake, or a program
	Args map[string]any // query or arguments
	Body any            `json:",omitempty"`
}

// Record appends a call to the file that RECORD_CALLS names, if it is set. Of calls of one form it records the first of
// each test.
func (s *Set) Record(c Call) {
	path := os.Getenv("RECORD_CALLS")
	if path == "" {
		return
	}
	key := "call " + c.Test + c.Name + shape(c.Args) + shape(c.Body)
	if query, ok := c.Body.(string); ok {
		key += query
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.compiled[key]; known {
		return
	}
	s.compiled[key] = nil
	line, err := json.Marshal(c)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(line, '\n')) // one write: processes share the file
		_ = f.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("record call: %v", err))
	}
}

// shape names the fields of a value and the kinds of their values.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var all []string
		for name, value := range v {
			all = append(all, name+":"+shape(value))
		}
		slices.Sort(all)
		return "{" + strings.Join(all, " ") + "}"
	case []any:
		var all []string
		for _, value := range v {
			all = append(all, shape(value))
		}
		slices.Sort(all)
		return "[" + strings.Join(slices.Compact(all), " ") + "]"
	}
	return fmt.Sprintf("%T", v)
}

var (
	testFunction = regexp.MustCompile(`errand-fleet/errand/([\w/]+?)(?:_test)?\.(Test\w+|main)`)
	ourFunction  = regexp.MustCompile(`errand-fleet/errand/((?:agent|cmd|e2e|forge|tasks|web)[\w/]*)`)
)

// Maker returns the package and name of the test that calls it, directly or not; the package alone if a subtest of a
// helper does; or the name of the program.
func Maker() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	best := filepath.Base(os.Args[0])
	for {
		frame, more := frames.Next()
		if m := testFunction.FindStringSubmatch(frame.Function); m != nil {
			return m[1] + "." + m[2]
		}
		if m := ourFunction.FindStringSubmatch(frame.Function); m != nil {
			best = m[1]
		}
		if !more {
			return best
		}
	}
}
