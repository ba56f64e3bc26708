package format

import (
	"fmt"
	"slices"
	"strings"

	"weightfs/format/names"
	"weightfs/format/tensor"
)

// chooses tells whether the tensors that are shown are others than those in the files.
func (o *Options) chooses() bool {
	return len(o.Include) > 0 || len(o.Exclude) > 0 || o.Map != nil
}

// choose leaves out of a header what is not wanted, and gives the rest their other names,
// which may depend on the checkpoint's metadata.
func (o *Options) choose(h *tensor.Header, meta tensor.Object) {
	if !o.chooses() {
		return
	}
	h.Tensors = slices.DeleteFunc(h.Tensors, func(t tensor.Info) bool {
		return len(o.Include) > 0 && !matchesAny(o.Include, t.Name) || matchesAny(o.Exclude, t.Name)
	})
	rules := o.rules(meta)
	for i := range h.Tensors {
		h.Tensors[i].Name = rules.Apply(h.Tensors[i].Name)
	}
}

// rules are those of Map for a checkpoint of this metadata.
func (o *Options) rules(meta tensor.Object) *names.Rules {
	architecture, _ := meta.Get("general.architecture").(string)
	return o.Map.For(architecture)
}

// Renamed is what Map makes of a name in the files.
func (c *Checkpoint) Renamed(name string) string {
	if c.opt.Map == nil {
		return name
	}
	return c.opt.rules(c.Meta()).Apply(name)
}

func matchesAny(patterns []names.Pattern, name string) bool {
	return slices.ContainsFunc(patterns, func(p names.Pattern) bool { return p.Match(name) })
}

// choice is what of the options decides which tensors an index holds.
func (o *Options) choice() string {
	var b strings.Builder
	for _, list := range [][]names.Pattern{o.Include, o.Exclude} {
		for _, p := range list {
			fmt.Fprintf(&b, "%q ", p)
		}
		b.WriteByte(0)
	}
	b.WriteString(o.Map.Text())
	return b.String()
}
