package agent

import (
	"bytes"
	"image"
	_ "image/gif" // the formats that PictureType knows
	_ "image/jpeg"
	_ "image/png"
)

// Bounds of the pictures in one message. The CLI scales pictures down to 2000 pixels a side and about half a megabyte (observed with 2.1.329,
// up to 16 MB), so they bound the work of the CLI and not that of the model.
const (
	MaxPictures     = 5
	maxPictureBytes = 20 << 20
	maxPixels       = 50_000_000
	pictureTail     = 64 << 10
)

// pictureEnds has the bytes that end an image of a format. Cameras and phones append up to pictureTail bytes.
var pictureEnds = map[string][]byte{"png": []byte("IEND\xaeB`\x82"), "jpeg": {0xff, 0xd9}, "gif": {0x3b}}

// PictureType returns the media type of an image that can be shown to the model: a PNG, JPEG or GIF that is complete and within the CLI's
// limits; empty for anything else. It looks at the bytes and not at a declared type, because the model's API refuses a broken image, and then
// every later message of that conversation.
func PictureType(data []byte) string {
	if len(data) > maxPictureBytes {
		return ""
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || c.Width == 0 || c.Height == 0 || c.Width > maxPixels/c.Height {
		return ""
	}
	if tail := data[max(0, len(data)-pictureTail):]; !bytes.Contains(tail, pictureEnds[format]) {
		return ""
	}
	return "image/" + format
}
