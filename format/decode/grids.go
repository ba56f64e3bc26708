package decode

import _ "embed"

//go:embed grids.bin
var gridData []byte

// grids holds the points in the order of grids.bin.
var grids struct {
	iq2xxs [256]uint16
	iq2xs  [512]uint16
	iq2s   [1024]uint16
	iq3xxs [256]uint16
	iq3s   [512]uint16
	iq1s   [2048]uint16
}

func init() {
	data := gridData
	for _, grid := range [][]uint16{
		grids.iq2xxs[:], grids.iq2xs[:], grids.iq2s[:], grids.iq3xxs[:], grids.iq3s[:], grids.iq1s[:],
	} {
		for i := range grid {
			grid[i] = le.Uint16(data[2*i:])
		}
		data = data[2*len(grid):]
	}
}
