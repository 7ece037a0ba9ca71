package agent

import (
	"bytes"
	"image"
	_ "image/gif" // the formats that PictureType knows
	_ "image/jpeg"
	_ "image/png"
)

// Bounds of the pictures in one message. The CLI scales what it sends down to 2000 pixels a side and half a megabyte or so (seen on 2.1.329,
// up to 16 MB), so they bound its work and not the model's.
const (
	MaxPictures     = 5
	maxPictureBytes = 20 << 20
	maxPixels       = 50_000_000
	pictureTail     = 64 << 10
)

// pictureEnds is how an image of a format ends. Cameras and telephones put up to pictureTail bytes of their own behind it.
var pictureEnds = map[string][]byte{"png": []byte("IEND\xaeB`\x82"), "jpeg": {0xff, 0xd9}, "gif": {0x3b}}

// PictureType returns the media type of an image that can be shown to the model: a PNG, JPEG or GIF that is whole and within the CLI's limits.
// It is empty for anything else. The model's API refuses a broken image, and goes on to refuse every later message of that conversation, so
// the bytes decide and not what somebody calls them.
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
