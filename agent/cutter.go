package agent

// stringBytes is how much is kept of a string that is cut.
const stringBytes = 64 << 10

// cutter shortens the strings of a JSON text that comes in pieces, and leaves it JSON.
type cutter struct {
	limit  int  // bytes of a string, but for the rest of a character
	inside bool // a string
	length int  // of the string so far
	escape int  // how many bytes of an escape are to come
	drop   bool // the character, or escape, is behind the limit
}

// Append appends what is left of text to dst, which may be the beginning of text.
func (c *cutter) Append(dst, text []byte) []byte {
	for _, b := range text {
		switch {
		case !c.inside:
			c.inside, c.length = b == '"', 0
		case c.escape > 0:
			if c.escape--; b == 'u' { // no hexadecimal digit: these are four, and still to come
				c.escape = 4
			}
		case b == '"':
			c.inside, c.drop = false, false
		default:
			if c.drop = c.length > c.limit; b == '\\' {
				c.escape = 1
			}
		}
		if c.length++; !c.drop {
			dst = append(dst, b)
		}
	}
	return dst
}
