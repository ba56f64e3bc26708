package store

import (
	"net/url"
	"regexp"
	"strings"
)

var scheme = regexp.MustCompile(`^([A-Za-z][\w+.-]*)://`)

// fetchers are what a user has at hand for the addresses of a scheme.
var fetchers = map[string]string{
	"s3": "aws s3 cp", "gs": "gcloud storage cp", "az": "azcopy copy", "http": "curl -LO", "https": "curl -LO",
}

// remote is the fault of an address, which is none of the names that Resolve knows; nil for any other
// source.
func remote(source string) error {
	m := scheme.FindStringSubmatch(source)
	if m == nil {
		return nil
	}
	name := strings.ToLower(m[1])
	if u, err := url.Parse(source); name == "file" && err == nil && u.Path != "" {
		return &NotFoundError{Source: source, Msg: "an address and no path", Hint: "name it as " + u.Path}
	}
	hint := "download it first"
	if with := fetchers[name]; with != "" {
		hint += ", as with " + with
	}
	return &NotFoundError{Source: source, Msg: "weightfs reads local files and downloads nothing", Hint: hint}
}
