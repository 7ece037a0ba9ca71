// Package chart draws bar charts as SVG. Charts need no script and no inline style: web/internal/respond's style.css
// gives each series its colour by its class. A table with the same numbers follows, for readers who do not see the
// chart. The package has no state.
package chart

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"strconv"
)

// Bars is a chart with one bar for each period or name, stacked of one part for each series.
type Bars struct {
	ID     string // unique in the page
	Title  string // what is counted, such as "Ended tasks by hour"
	Column string // what a bar means, such as "Hour"
	Series []Series
	Bars   []Bar
	Format func(float64) string // of a value; nil: a whole number
}

// Series is a part of every bar.
type Series struct {
	Name  string // for the legend and the table
	Class string // "done", "stopped", "failed", "cost" or "second" to "fifth"; see style.css
}

// Bar has a value for each series, which is not negative.
type Bar struct {
	Label  string // for the table and the tooltip
	Tick   string // below the bar if there is room: about every sixth bar shows it; empty: none
	URL    string // what the label in the table leads to; empty: nothing
	Values []float64
}

// Total returns the sum of the bar's values.
func (b Bar) Total() (sum float64) {
	for _, v := range b.Values {
		sum += v
	}
	return sum
}

// The plot lies between these heights, in percent. The highest value is above it, and the ticks are below.
const top, bottom = 14.0, 84.0

// HTML returns the chart as a figure. A chart in which all values are 0 has no bars, but the same size.
func (c Bars) HTML() (template.HTML, error) {
	var b bytes.Buffer
	if err := page.Execute(&b, c); err != nil {
		return "", fmt.Errorf("draw chart %s: %w", c.ID, err)
	}
	return template.HTML(b.String()), nil //nolint:gosec // html/template has escaped it
}

// Text formats a value.
func (c Bars) Text(v float64) string {
	if c.Format == nil {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return c.Format(v)
}

// Max returns the value at the top of the plot, which has one digit that is not 0.
func (c Bars) Max() float64 {
	most := 0.0
	for _, b := range c.Bars {
		most = max(most, b.Total())
	}
	if most == 0 {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(most)))
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if m*scale >= most {
			return m * scale
		}
	}
	return most
}

// rect is a rectangle in percent.
type rect struct{ X, Y, Width, Height, Class, Tip, Tick string }

// Rects returns, for each bar, the area that shows the tooltip, followed by its parts from the bottom up.
func (c Bars) Rects() [][]rect {
	percent := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }
	most, width, every := c.Max(), 100/float64(max(len(c.Bars), 1)), (len(c.Bars)+5)/6
	var list [][]rect
	for i, b := range c.Bars {
		x := float64(i) * width
		area := rect{
			X: percent(x), Y: percent(top), Width: percent(width), Height: percent(bottom - top),
			Class: "area", Tip: b.Label,
		}
		if i%every == 0 {
			area.Tick = b.Tick
		}
		parts, y := []rect{area}, bottom
		for j, v := range b.Values {
			parts[0].Tip += fmt.Sprintf("\n%s: %s", c.Series[j].Name, c.Text(v))
			if v > 0 {
				height := max(v/most*(bottom-top), 1)
				y -= height
				parts = append(parts, rect{
					X: percent(x + width/10), Y: percent(y), Width: percent(width * 8 / 10), Height: percent(height),
					Class: c.Series[j].Class,
				})
			}
		}
		list = append(list, parts)
	}
	return list
}

var page = template.Must(template.New("chart").Parse(`<figure class="chart" id="{{.ID}}">
<figcaption>{{.Title}}{{if gt (len .Series) 1}}{{range .Series}} <span class="key {{.Class}}">{{.Name}}</span>{{end}}{{end}}</figcaption>
<svg role="img" aria-labelledby="{{.ID}}-title {{.ID}}-desc"><title id="{{.ID}}-title">{{.Title}}</title>
<desc id="{{.ID}}-desc">A bar chart. The table below it has the same numbers.</desc>
<text x="0" y="9%">{{.Text .Max}}</text><line x1="0" x2="100%" y1="14%" y2="14%"/><line x1="0" x2="100%" y1="84%" y2="84%"/>
{{range .Rects}}<g>{{range .}}{{with .Tip}}<title>{{.}}</title>{{end}}<rect class="{{.Class}}" x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="{{.Height}}"/>{{if .Tick}}<text x="{{.X}}" y="98%">{{.Tick}}</text>{{end}}{{end}}</g>
{{end}}</svg>
<details id="{{.ID}}-table"><summary>Show the numbers</summary><table class="figures"><thead><tr><th>{{.Column}}</th>{{range .Series}}<th>{{.Name}}</th>{{end}}</tr></thead>
<tbody>{{range .Bars}}<tr><th scope="row">{{if .URL}}<a href="{{.URL}}">{{.Label}}</a>{{else}}{{.Label}}{{end}}</th>{{range .Values}}<td>{{$.Text .}}</td>{{end}}</tr>
{{end}}</tbody></table></details>
</figure>
`))
