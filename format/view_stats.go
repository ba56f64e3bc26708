package format

import (
	"encoding/hex"
	"io"
	"math"
	"sync"
	"unicode/utf8"

	"weightfs/digest"
	"weightfs/format/tensor"
)

// stats/: the statistics and the SHA-256 of each tensor, computed when they are read. The file has one
// size whatever comes out, so that nothing is computed for a stat.

// statsLen is the size of a statistics file: spaces fill what its object leaves.
const statsLen = 1024

func statsSize(*Checkpoint, uint32) int64 { return statsLen }

func openStats(c *Checkpoint, t uint32) (Content, error) {
	return newSegments(Produced(&statsText{c: c, tensor: t}, statsLen)), nil
}

// statsText is the text of a statistics file, made at the first read.
type statsText struct {
	c      *Checkpoint
	tensor uint32
	mu     sync.Mutex
	text   []byte
}

// ReadAt implements io.ReaderAt. A failure is tried again by the next read.
func (s *statsText) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil {
		sum, err := s.c.Digest(int(s.tensor), digest.Hash|digest.Stats)
		if err != nil {
			return 0, err
		}
		s.text = renderStats(s.c.index.Info(s.tensor), &sum)
	}
	if off >= statsLen {
		return 0, io.EOF
	}
	n := copy(p, s.text[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// renderStats renders the object, a member a line, so that grep shows what it found. What has no value
// is null: moments of no finite value, counts of a type that is not decoded, and a name or a shape
// that would not fit.
func renderStats(info tensor.Info, r *digest.Result) []byte {
	name := any(info.Name)
	if !utf8.ValidString(info.Name) {
		name = nil
	}
	var text []byte
	for _, fits := range [][2]any{{name, info.Shape}, {name, nil}, {nil, info.Shape}, {nil, nil}} {
		if text = statsObject(info, fits[0], fits[1], r); len(text) < statsLen {
			break
		}
	}
	for len(text) < statsLen-1 {
		text = append(text, ' ')
	}
	return append(text, '\n')
}

func statsObject(info tensor.Info, name, shape any, r *digest.Result) []byte {
	elements, _ := tensor.Elements(info.Shape) // the parser has checked it
	members := tensor.Object{
		{Key: "name", Value: name}, {Key: "dtype", Value: info.DType.String()}, {Key: "shape", Value: shape},
		{Key: "elements", Value: elements},
		{Key: "nan", Value: r.NaN}, {Key: "pos_inf", Value: r.PosInf}, {Key: "neg_inf", Value: r.NegInf},
		{Key: "zeros", Value: r.Zeros},
		{Key: "min", Value: finite(r.Min)}, {Key: "max", Value: finite(r.Max)},
		{Key: "mean", Value: finite(r.Mean)}, {Key: "std", Value: finite(r.Std)},
		{Key: "sha256", Value: hex.EncodeToString(r.SHA256[:])},
	}
	for i := range members {
		switch members[i].Key {
		case "nan", "pos_inf", "neg_inf", "zeros":
			if r.Has&digest.Stats == 0 {
				members[i].Value = nil
			}
		case "min", "max", "mean", "std":
			if r.Finite == 0 {
				members[i].Value = nil
			}
		}
	}
	b := []byte("{")
	for i, kv := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, "\n  \""...), kv.Key...), `": `...)
		b = tensor.AppendJSON(b, kv.Value)
	}
	return append(b, "\n}"...)
}

// finite is a number, or null where a moment is beyond float64.
func finite(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}
