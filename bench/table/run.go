package table

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Main is the main function of a benchmark, which a signal ends in order.
func Main[O any](
	parse func(args []string, stderr io.Writer) (O, error),
	measure func(ctx context.Context, o O, progress io.Writer) (*Report, error),
) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, os.Args[1:], os.Stdout, os.Stderr, parse, measure)
	stop()
	os.Exit(code)
}

// Run parses the arguments, measures, prints, and returns the exit code. A missed bar is a result, not a failure.
func Run[O any](ctx context.Context, args []string, stdout, stderr io.Writer,
	parse func(args []string, stderr io.Writer) (O, error),
	measure func(ctx context.Context, o O, progress io.Writer) (*Report, error),
) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	report, err := measure(ctx, o, &turns{w: stderr})
	if err == nil {
		err = report.Print(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// turns is a writer for many goroutines, which also copy the output of measured processes.
type turns struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *turns) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(b)
}

// Step is one measurement.
type Step struct {
	Name string
	Do   func(context.Context) error
}

// Only adds a flag that selects steps.
func Only(flags *flag.FlagSet, steps []Step) *regexp.Regexp {
	var names strings.Builder
	for _, s := range steps {
		names.WriteString(" " + s.Name)
	}
	only := new(regexp.Regexp)
	flags.TextVar(only, "only", regexp.MustCompile(""),
		"a regular expression for the names of the steps to take:"+names.String())
	return only
}

// Take runs the selected steps, one after the other.
func Take(ctx context.Context, progress io.Writer, only *regexp.Regexp, steps []Step) error {
	for _, s := range steps {
		if !only.MatchString(s.Name) {
			continue
		}
		fmt.Fprintln(progress, "==", s.Name)
		if err := s.Do(ctx); err != nil {
			return fmt.Errorf("measure %s: %w", s.Name, err)
		}
	}
	return nil
}

// Median returns the middle value; the lower of two.
func Median[V cmp.Ordered](values []V) V {
	return MedianOf(values, func(v V) V { return v })
}

// MedianOf returns the median of the values that of returns; the lower of two.
func MedianOf[S any, V cmp.Ordered](samples []S, of func(S) V) V {
	values := make([]V, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
