package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// A definition is the part of Kafka's message JSON that is used here.
type definition struct {
	Name             string
	Type             string // request, response, or another
	ApiKey           int16
	Versions         string `json:"validVersions"`
	Fields           []declared
	FlexibleVersions string
	CommonStructs    []struct {
		Name   string
		Fields []declared
	}
}

type declared struct {
	Name             string
	Type             string
	Versions         string
	NullableVersions string
	TaggedVersions   string
	Tag              *int
	Fields           []declared
}

// A field of franz-go, matched with the field of the definition.
type field struct {
	name            string // of the definition, with a lower-case first letter
	index           int
	known, nullable span
	inner           []field
}

type span struct{ low, high int16 }

func (s span) has(version int16) bool { return s.low <= version && version <= s.high }

// spanOf parses "3", "3-5", "3+" and "none".
func spanOf(text string) span {
	low, high, ranged := strings.Cut(text, "-")
	if open, plus := strings.CutSuffix(text, "+"); plus {
		low, high = open, "32767"
	} else if !ranged {
		high = low
	}
	first, err := strconv.ParseInt(low, 10, 16)
	if err != nil {
		return span{1, 0}
	}
	last, _ := strconv.ParseInt(high, 10, 16)
	return span{int16(first), int16(last)}
}

func definitions(folder string) ([]definition, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no definitions in %s", folder)
	}
	var found []definition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := bytes.Split(text, []byte("\n"))
		for i, line := range lines {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
				lines[i] = nil
			}
		}
		var one definition
		if err := json.Unmarshal(bytes.Join(lines, []byte("\n")), &one); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found = append(found, one)
	}
	return found, nil
}

// inner returns the fields of a declared field that is a struct, or a list of structs.
func (d *definition) inner(of declared) []declared {
	if len(of.Fields) > 0 {
		return of.Fields
	}
	for _, each := range d.CommonStructs {
		if each.Name == strings.TrimPrefix(of.Type, "[]") {
			return each.Fields
		}
	}
	return nil
}

// beside finds the declared field for each field of a franz-go struct: by name where only the spelling differs
// (TimeoutMillis, TimeoutMs), otherwise the first remaining one whose type matches. Fields without a tag come first: a
// release may lack a tagged one.
func (d *definition) beside(kind reflect.Type, all []declared, newest int16) ([]field, error) {
	left := make([]*declared, 0, len(all))
	for i := range all {
		// A release lacks later fields; tagged fields were added without a new version.
		if all[i].Tag != nil || spanOf(all[i].Versions).low <= newest {
			left = append(left, &all[i])
		}
	}
	var found []field
	pair := func(index int, fits func(reflect.StructField, *declared) bool) (bool, error) {
		theirs := kind.Field(index)
		for i, each := range left {
			if each == nil || !fits(theirs, each) || !d.could(theirs.Type, *each) {
				continue
			}
			left[i] = nil
			one := field{lower(each.Name), index, spanOf(each.Versions), spanOf(each.NullableVersions), nil}
			if inner := d.inner(*each); inner != nil {
				fields, err := d.beside(structIn(theirs.Type), inner, newest)
				if err != nil {
					return false, err
				}
				one.inner = fields
			}
			found = append(found, one)
			return true, nil
		}
		return false, nil
	}
	var nameless []int
	for i := range kind.NumField() {
		if name := kind.Field(i).Name; name == "Version" || name == "UnknownTags" {
			continue
		}
		same, err := pair(i, func(theirs reflect.StructField, each *declared) bool {
			return plain(theirs.Name) == plain(each.Name)
		})
		if err != nil {
			return nil, err
		}
		if !same {
			nameless = append(nameless, i)
		}
	}
	for _, i := range nameless {
		paired, err := pair(i, func(_ reflect.StructField, each *declared) bool { return each.Tag == nil })
		if err == nil && !paired {
			paired, err = pair(i, func(reflect.StructField, *declared) bool { return true })
		}
		if err != nil {
			return nil, err
		}
		if !paired {
			return nil, fmt.Errorf("%s: no declared field matches %s", d.Name, kind.Field(i).Name)
		}
	}
	for _, each := range left {
		if each != nil && each.Tag == nil {
			return nil, fmt.Errorf("%s: %s has no %s", d.Name, kind.Name(), each.Name)
		}
	}
	return found, nil
}

func plain(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "millis", "ms")
}

func lower(name string) string {
	return strings.ToLower(name[:1]) + name[1:]
}

// could reports whether a field of this type can be the declared one.
func (d *definition) could(kind reflect.Type, each declared) bool {
	if name, list := strings.CutPrefix(each.Type, "[]"); list {
		if kind.Kind() != reflect.Slice {
			return false
		}
		one := each
		one.Type = name
		return d.could(kind.Elem(), one)
	}
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch each.Type {
	case "bytes", "records":
		return kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Uint8
	case "uuid":
		return kind.Kind() == reflect.Array && kind.Len() == 16
	case "string", "bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "float64":
		return kind.Kind().String() == each.Type
	}
	return kind.Kind() == reflect.Struct
}

func structIn(kind reflect.Type) reflect.Type {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	return kind
}
