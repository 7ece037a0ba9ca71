package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
)

// memory is a front door's report of its memory, in bytes.
type memory struct {
	used       float64 // objects on the heap, and stacks
	stacks     float64 // of these
	rss        float64
	goroutines float64
	collected  float64 // number of garbage collections
}

// collections is the number of garbage collections before memory is read. Each halves stacks that have grown.
const collections = 6

// settled reads the memory that a front door keeps: the minimum of heap and stacks after garbage collections, which it
// causes by requesting long lists.
func (s *stage) settled(ctx context.Context) (memory, error) {
	conn, in, err := dial(ctx, s.front.Addr)
	if err != nil {
		return memory{}, err
	}
	defer conn.Close()
	least, err := scrape(conn, in)
	if err != nil {
		return memory{}, err
	}
	for until := least.collected + collections; least.collected < until+collections; {
		if err := skip(conn, in, "/api/openapi.yaml"); err != nil {
			return memory{}, err
		}
		now, err := scrape(conn, in)
		if err != nil {
			return memory{}, err
		}
		if least.collected < until || now.used < least.used {
			least.used, least.stacks, least.rss, least.goroutines = now.used, now.stacks, now.rss, now.goroutines
		}
		least.collected = now.collected
	}
	return least, nil
}

// skip loads a page and discards it.
func skip(conn net.Conn, in *bufio.Reader, path string) error {
	resp, err := get(conn, in, path)
	if err != nil {
		return fmt.Errorf("get %s: %w", path, err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err != nil {
		return fmt.Errorf("get %s: %w", path, err)
	}
	return resp.Body.Close()
}

// scrape reads the metrics.
func scrape(conn net.Conn, in *bufio.Reader) (m memory, _ error) {
	resp, err := get(conn, in, "/metrics")
	if err != nil {
		return m, fmt.Errorf("read metrics: %w", err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.ParseFloat(value, 64) // other values are not used
		switch name {
		case "go_memstats_heap_alloc_bytes":
			m.used += n
		case "go_memstats_stack_inuse_bytes":
			m.used, m.stacks = m.used+n, n
		case "process_resident_memory_bytes":
			m.rss = n
		case "go_goroutines":
			m.goroutines = n
		case "go_gc_duration_seconds_count":
			m.collected = n
		}
	}
	if err := lines.Err(); err != nil {
		return m, fmt.Errorf("read metrics: %w", err)
	}
	return m, nil
}

// peak returns the peak memory of a process since the kernel's record was reset, in bytes.
func peak(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read peak memory: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("read peak memory: it is not in the status of process %d", pid)
	}
	kb, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0, fmt.Errorf("read peak memory: %w", err)
	}
	return kb * 1024, nil
}
