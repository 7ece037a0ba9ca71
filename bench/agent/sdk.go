package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sdkInstalled returns an error with instructions if the SDK is not installed.
func (b *bench) sdkInstalled() error {
	_, err := os.Stat(filepath.Join(b.Root, "node_modules", "@anthropic-ai", "claude-agent-sdk"))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the SDK is not installed: use `make bench`, or leave it out with -sdk=false")
	}
	return err
}

// sdk reads the session with the official TypeScript SDK.
func (b *bench) sdk(ctx context.Context) (sample, error) {
	cmd := exec.CommandContext(ctx, "node", filepath.Join("agent", "sdk.mjs"), b.self, b.session)
	cmd.Dir, cmd.Env, cmd.Stderr = b.Root, append(environment(""), "HOME="+b.dir), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return sample{}, fmt.Errorf("run node: %w", err)
	}
	var said struct { // microseconds and KiB, Node's units
		Wall, CPU, RSS, Lines int64
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return sample{}, fmt.Errorf("read what node measured: %w", err)
	}
	return sample{
		Wall: time.Duration(said.Wall) * time.Microsecond, CPU: time.Duration(said.CPU) * time.Microsecond,
		RSS: said.RSS << 10, Lines: said.Lines,
	}, nil
}
