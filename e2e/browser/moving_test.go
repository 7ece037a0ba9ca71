package browser

import (
	"bytes"
	"image"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The README's moving picture is the page of a task from its request to its answer, with the real CLI behind it.
//
//nolint:paralleltest // alone, because encoding takes the processors that the waits of the other tests need
func TestMovingPicture(t *testing.T) {
	tools := t.TempDir() // what the agent's commands find instead of a repository
	for name, script := range map[string]string{
		"rg": "[ $1 = -l ] && echo invoice/total.go checkout/cart.go || echo 'invoice/total.go:6:func Total(lines []float64) int {'",
		"go": "echo '--- FAIL: TestTotal (0.00s): total of 0.29 = 28, want 29'; exit 1",
	} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l := newLive(t, "PATH="+tools+":"+os.Getenv("PATH"))
	l.as(looks[0])
	bash := func(command, about string) modelfake.ToolCall {
		return modelfake.ToolCall{Name: "Bash", Input: map[string]string{"command": command, "description": about}}
	}
	gates := make([]chan struct{}, 4)
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	l.model.Answer("which package",
		modelfake.Turn{
			Gate: gates[0], Text: "I look at the packages first.",
			Tools: []modelfake.ToolCall{bash("rg -l Total", "Look for totals")},
			Usage: modelfake.Usage{Input: 24_000, Output: 300},
		},
		modelfake.Turn{
			Gate: gates[1], Text: "Two of them handle totals.",
			Tools: []modelfake.ToolCall{bash("rg -n 'func Total' invoice", "Find where totals are rounded")},
			Usage: modelfake.Usage{Input: 25_000, Output: 200},
		},
		modelfake.Turn{
			Gate: gates[2], Text: "The conversion to cents cuts instead of rounding.",
			Tools: []modelfake.ToolCall{bash("go test ./invoice", "Check it with a test")},
			Usage: modelfake.Usage{Input: 26_000, Output: 400},
		},
		modelfake.Turn{
			Gate: gates[3],
			Text: "**invoice** rounds totals, in `Total`: `int(sum * 100)` cuts off what float64 cannot hold, so 0.29 becomes 28 cents. Use `math.Round`.",
		})
	var moving gif.GIF
	frame := func(hundredths int) {
		shot, err := png.Decode(bytes.NewReader(l.shoot(false)))
		l.must(err)
		paletted := image.NewPaletted(shot.Bounds(), palette.Plan9)
		draw.Draw(paletted, shot.Bounds(), shot, image.Point{}, draw.Src)
		moving.Image, moving.Delay = append(moving.Image, paletted), append(moving.Delay, hundredths)
	}
	l.ask("which package rounds totals?")
	l.find("#state", "Working")
	frame(150)
	for i, seen := range []string{"Look for totals", "Find where totals are rounded", "Check it with a test"} {
		close(gates[i])
		l.find("#events", seen)
		l.find("#state", "Working")
		frame(150)
	}
	close(gates[3])
	l.find("#state", "Done")
	l.find(".answer strong", "invoice")
	frame(400)
	l.check()
	for i := 1; i < len(moving.Image); i++ {
		if bytes.Equal(moving.Image[i].Pix, moving.Image[i-1].Pix) {
			t.Errorf("picture %d is like the one before", i)
		}
	}
	if *pictures {
		var b bytes.Buffer
		l.must(gif.EncodeAll(&b, &moving))
		l.keep(made+"/task.gif", b.Bytes())
	}
}
