package term

import "io"

// Redirect sends what is written to a terminal to w.
func (o *Out) Redirect(w io.Writer) { o.w = w }
