package cli

import (
	"bufio"
	"sync"

	"weightfs/format/tensor"
	"weightfs/transfer"
)

// A copyReport is what --json prints: every file as it is done, and a sum. After a failure the object
// ends with the message.
type copyReport struct {
	mu      sync.Mutex
	out     *bufio.Writer // nil without --json
	files   int
	present int
	bytes   int64
}

func (cp *copying) newReport() *copyReport {
	r := &copyReport{}
	if cp.json {
		r.out = bufio.NewWriter(cp.out)
		r.out.WriteString(`{"source": `)
		r.out.Write(tensor.AppendString(nil, cp.checkpoint.Source))
		r.out.WriteString(`, "files": [`)
	}
	return r
}

func (r *copyReport) add(item copyItem, outcome transfer.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files++
	if outcome.Present {
		r.present++
	} else {
		r.bytes += outcome.Bytes
	}
	if r.out == nil {
		return
	}
	if r.files > 1 {
		r.out.WriteByte(',')
	}
	r.out.WriteString("\n  ")
	r.out.Write(tensor.AppendJSON(nil, tensor.Object{
		{Key: "path", Value: item.path}, {Key: "copy", Value: item.to}, {Key: "bytes", Value: outcome.Bytes}, {Key: "present", Value: outcome.Present},
	}))
}

// close ends the object.
func (r *copyReport) close(failure error) error {
	if r.out == nil {
		return nil
	}
	sum := tensor.Object{{Key: "copied", Value: r.files - r.present}, {Key: "present", Value: r.present}, {Key: "bytes", Value: r.bytes}}
	if failure != nil {
		sum = append(sum, tensor.KV{Key: "error", Value: failure.Error()})
	}
	r.out.WriteString("], ")
	r.out.Write(tensor.AppendJSON(nil, sum)[1:])
	r.out.WriteByte('\n')
	return r.out.Flush()
}
