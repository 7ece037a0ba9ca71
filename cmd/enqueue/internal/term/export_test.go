package term

import "io"

// Redirect lets what is written to a terminal go elsewhere.
func (o *Out) Redirect(w io.Writer) { o.w = w }
