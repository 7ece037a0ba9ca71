package agent

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// Only what the model's API takes is a picture: a broken one would end its conversation for good.
func TestPictureType(t *testing.T) {
	t.Parallel()
	encode := func(write func(*bytes.Buffer, image.Image) error) []byte {
		var b bytes.Buffer
		if err := write(&b, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	asPNG := encode(func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) })
	asJPEG := encode(func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) })
	asGIF := encode(func(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) })
	huge := bytes.Clone(asPNG)
	copy(huge[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65,536 pixels a side; the header's checksum is wrong then, too
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"PNG": {asPNG, "image/png"}, "JPEG": {asJPEG, "image/jpeg"}, "GIF": {asGIF, "image/gif"},
		"JPEG of a telephone": {append(bytes.Clone(asJPEG), "SEFT and more"...), "image/jpeg"},
		"cut PNG":             {asPNG[:len(asPNG)-4], ""}, "cut JPEG": {asJPEG[:len(asJPEG)-2], ""},
		"cut GIF": {asGIF[:20], ""}, "too many pixels": {huge, ""}, "text": {[]byte("image/png"), ""},
		"nothing": {nil, ""}, "too large": {append(bytes.Clone(asPNG), make([]byte, maxPictureBytes)...), ""},
	} {
		if got := PictureType(test.data); got != test.want {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
	}
}
