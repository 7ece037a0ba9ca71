package format

import (
	"math"
)

// WholeUSD rounds a sum to micro-dollars, the precision of stored amounts.
func WholeUSD(sum float64) float64 { return math.Round(sum*1e6) / 1e6 }
