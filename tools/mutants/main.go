// Mutants changes the product in many small ways, one at a time, and reports which changes no test notices.
//
//	go -C tools run ./mutants [-seed 1] [-n 150] [-only REGEXP] [-list]
//
// It picks the changes with the seed, in equal shares from the packages that hold money, secrets, ownership and posting
// (table.go). All changes to Go sources are compiled once, and a file beside the test program says which of them is in
// force; a change of a Lua script is compiled by itself. Each change is held against the tests that reach it, the quickest
// first. It prints a line for each change, the survivors and their number.
//
// The changed sources are an overlay of the compiler: no file of the checkout is written. Processes that tests leave behind
// are ended.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == holdCommand {
		os.Exit(hold(os.Args[2:]))
	}
	seed := flag.Uint64("seed", 1, "of the pick")
	n := flag.Int("n", 150, "the number of changes to pick")
	only := flag.String("only", "", "a regular expression: try only the picked changes to `packages` that match")
	list := flag.Bool("list", false, "print the picked changes, and run nothing")
	flag.Parse()
	log.SetFlags(0)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, options{root: "..", out: os.Stdout, subjects: subjects, seed: *seed, n: *n, only: *only, list: *list})
	if err != nil {
		log.Fatal(err)
	}
}

type options struct {
	root     string // the checkout
	out      io.Writer
	subjects []subject
	seed     uint64
	n        int
	only     string
	list     bool
}

func run(ctx context.Context, o options) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	all, err := find(root, o.subjects)
	if err != nil {
		return err
	}
	picked := pick(all, o.seed, o.n)
	fmt.Fprintf(o.out, "%d changes, seed %d\n", len(picked), o.seed)
	picked = slices.DeleteFunc(picked, func(s *site) bool { return !only.MatchString(s.subject.dir) })
	if o.list {
		for _, s := range picked {
			fmt.Fprintln(o.out, s)
		}
		return nil
	}

	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := trial{root: root, dir: dir, out: o.out, sites: picked}
	if err := t.run(ctx); err != nil {
		return err
	}
	t.report()
	return nil
}
