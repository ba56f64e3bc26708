package cli

import "fmt"

// asF32 is the one type that assembled files can be converted to.
type asF32 struct{ on *bool }

func (v asF32) Type() string { return "type" }

func (v asF32) String() string {
	if v.on != nil && *v.on {
		return "f32"
	}
	return ""
}

func (v asF32) Set(s string) error {
	if s != "f32" {
		return fmt.Errorf("unknown type (only f32)")
	}
	*v.on = true
	return nil
}
