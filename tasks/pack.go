package tasks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

const (
	packPiece = 64 << 10 // what is packed at once, in whole lines where they are shorter
	packMost  = 64 << 20 // what is read for one half of a log, however well it packs
)

// pack compresses the bytes of a file from one place to another into at most limit bytes of gzip. Of what is too large the beginning and
// the end are kept, with a line between them that says how many bytes are missing; cut is its format.
func pack(file io.ReaderAt, from, to int64, limit int, cut string) ([]byte, error) {
	half := (limit - 1<<10) / 2 // room for the line
	head, n, err := packSome(file, from, to, half)
	from += n
	if err != nil || from == to {
		return head, err
	}
	// How much of the end will fit is only known by trying; it mostly packs as well as the beginning.
	var tail []byte
	start := max(from, to-n)
	for {
		if start > from {
			if start, err = nextLine(file, start, to); err != nil {
				return nil, err
			}
		}
		if tail, n, err = packSome(file, start, to, half); err != nil {
			return nil, err
		}
		if start+n == to {
			break
		}
		start = to - n*9/10
	}
	if start > from {
		var line bytes.Buffer
		z := gzip.NewWriter(&line)
		fmt.Fprintf(z, cut, start-from)
		if err := z.Close(); err != nil {
			return nil, err
		}
		head = append(head, line.Bytes()...) // gzip files in a row are one
	}
	return append(head, tail...), nil
}

// packSome compresses as much as fits into limit bytes, and tells how much that was.
func packSome(file io.ReaderAt, from, to int64, limit int) (data []byte, n int64, err error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, 0, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), packPiece)
	// What does not pack at all takes a little more than itself.
	for room := packPiece + packPiece/64; out.Len()+room <= limit && n < packMost; {
		piece, err := in.Peek(packPiece)
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 && err == nil {
			piece = piece[:i+1]
		}
		if len(piece) == 0 {
			break
		}
		if _, err := z.Write(piece); err != nil {
			return nil, 0, err
		}
		if err := z.Flush(); err != nil { // so that out is all there is
			return nil, 0, err
		}
		n += int64(len(piece))
		_, _ = in.Discard(len(piece)) // it has been peeked
	}
	err = z.Close()
	return out.Bytes(), n, err
}

// nextLine is where the first line after a place begins; at to when there is none, and right there when that would be too far.
func nextLine(file io.ReaderAt, from, to int64) (int64, error) {
	piece := make([]byte, min(packPiece, to-from))
	n, err := file.ReadAt(piece, from)
	if err != nil && err != io.EOF {
		return 0, err
	}
	if i := bytes.IndexByte(piece[:n], '\n'); i >= 0 {
		return from + int64(i) + 1, nil
	}
	return from, nil
}
