package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// codec is implemented by every message of the library.
type codec interface {
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
}

// A message of the library, matched with its definition.
type message struct {
	make      func(version int16) codec
	fields    []field
	low, high int16
}

// inexpressible is an error for something that the library cannot represent; name is one of the limits.
type inexpressible struct{ name, why string }

func (i inexpressible) Error() string { return i.why }

func noPlace(format string, values ...any) inexpressible {
	return inexpressible{"place", fmt.Sprintf(format, values...)}
}

// bare are the library's messages without an API key: their fields are known by name only.
var bare = map[string]struct {
	made   func() codec
	newest func() int16
}{
	"ConsumerProtocolSubscription": {func() codec { return new(kmsg.ConsumerMemberMetadata) }, joined},
	"ConsumerProtocolAssignment":   {func() codec { return new(kmsg.ConsumerMemberAssignment) }, joined},
	"StickyAssignorUserData":       {func() codec { return new(kmsg.StickyMemberMetadata) }, func() int16 { return 1 }},
	"GroupMetadataKey":             {func() codec { return new(kmsg.GroupMetadataKey) }, declaredNewest},
	"GroupMetadataValue":           {func() codec { return new(kmsg.GroupMetadataValue) }, declaredNewest},
	"OffsetCommitKey":              {func() codec { return new(kmsg.OffsetCommitKey) }, declaredNewest},
	"OffsetCommitValue":            {func() codec { return new(kmsg.OffsetCommitValue) }, declaredNewest},
	"TransactionLogKey":            {func() codec { return new(kmsg.TxnMetadataKey) }, declaredNewest},
	"TransactionLogValue":          {func() codec { return new(kmsg.TxnMetadataValue) }, declaredNewest},
}

// declaredNewest: the library does not report their newest version.
func declaredNewest() int16 { return -1 }

// joined is the highest version of consumer protocol data that the library's own members write.
func joined() int16 {
	highest := int16(0)
	for _, each := range balancers {
		var subscription kmsg.ConsumerMemberMetadata
		if subscription.ReadFrom(each().JoinGroupMetadata(nil, nil, -1)) == nil {
			highest = max(highest, subscription.Version)
		}
	}
	return highest
}

// lined are the messages that both the library and the folder have.
func lined(folder string) (map[string]*message, error) {
	all, err := definitions(folder)
	if err != nil {
		return nil, err
	}
	found := map[string]*message{}
	for _, each := range all {
		one := madeBy(each)
		if one == nil {
			continue
		}
		if one.fields, err = each.beside(reflect.TypeOf(one.make(one.high)).Elem(), each.Fields, one.high); err != nil {
			fmt.Fprintln(os.Stderr, err) // it is not claimed then
			continue
		}
		found[each.Name] = one
	}
	return found, nil
}

func madeBy(of definition) *message {
	versions := spanOf(of.Versions)
	if of.Type == "request" || of.Type == "response" {
		request := kmsg.RequestForKey(of.ApiKey)
		if request == nil {
			return nil
		}
		if of.Type == "request" {
			return &message{func(version int16) codec {
				made := kmsg.RequestForKey(of.ApiKey)
				made.SetVersion(version)
				return made
			}, nil, 0, request.MaxVersion()}
		}
		return &message{func(version int16) codec {
			made := kmsg.ResponseForKey(of.ApiKey)
			made.SetVersion(version)
			return made
		}, nil, 0, request.ResponseKind().MaxVersion()}
	}
	entry, there := bare[of.Name]
	if !there {
		return nil
	}
	newest := entry.newest()
	if newest < 0 {
		newest = versions.high
		// Flexible versions must keep unknown tags: a release without a field for them has no flexible version.
		flexible := spanOf(of.FlexibleVersions)
		if _, placed := reflect.TypeOf(entry.made()).Elem().FieldByName("UnknownTags"); !placed && flexible.has(newest) {
			newest = flexible.low - 1
		}
	}
	return &message{func(version int16) codec {
		made := entry.made()
		if leading := reflect.ValueOf(made).Elem().FieldByName("Version"); leading.IsValid() {
			leading.SetInt(int64(version))
		}
		return made
	}, nil, versions.low, newest}
}

func (m *message) perform(name string, op object) object {
	asked, err := number(op["version"])
	if err != nil || asked < int64(m.low) || asked > int64(m.high) {
		return object{"status": "unsupported", "message": fmt.Sprintf("it has no version %v", op["version"])}
	}
	version := int16(asked)
	made := m.make(version)
	if name == "encode" {
		value, _ := op["value"].(object)
		begin(made)
		err = fill(reflect.ValueOf(made).Elem(), m.fields, value)
		var cannot inexpressible
		if errors.As(err, &cannot) {
			return unsupported(cannot)
		} else if err != nil {
			return rejected(err)
		}
		return written(made, version)
	}
	text, _ := op["hex"].(string)
	data, err := hex.DecodeString(text)
	if err != nil {
		return object{"status": "unsupported", "message": err.Error()}
	}
	switch name {
	case "decode":
		if err := made.ReadFrom(data); err != nil {
			return rejected(err)
		}
		value, err := shown(reflect.ValueOf(made).Elem(), m.fields, version)
		var cannot inexpressible
		if errors.As(err, &cannot) {
			return unsupported(cannot)
		}
		return accepted("value", value)
	case "recode":
		if err := made.ReadFrom(data); err != nil {
			return rejected(err)
		}
		return written(made, version)
	}
	return object{"status": "unsupported", "message": "unknown operation " + name}
}

func written(made codec, version int16) object {
	if sticky, ok := made.(*kmsg.StickyMemberMetadata); ok && (sticky.Generation != -1) != (version == 1) {
		return unsupported(inexpressible{"version", fmt.Sprintf("it does not write v%d", version)})
	}
	return accepted("hex", hex.EncodeToString(made.AppendTo(nil)))
}

// begin sets what the library sets where the user does not.
func begin(made any) {
	if one, ok := made.(interface{ Default() }); ok {
		one.Default()
	}
}

func fill(target reflect.Value, fields []field, value object) error {
	for key, given := range value {
		if key == "_unknownTaggedFields" {
			if err := setTags(target, given); err != nil {
				return err
			}
			continue
		}
		known := false
		for _, each := range fields {
			if each.name == key {
				known = true
				if err := set(target.Field(each.index), each.inner, given); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
		}
		if !known {
			return noPlace("%s has no field for %s", target.Type().Name(), key)
		}
	}
	return nil
}

func set(target reflect.Value, inner []field, given any) error {
	if given == nil {
		if target.Kind() != reflect.Pointer && target.Kind() != reflect.Slice {
			return inexpressible{"null", fmt.Sprintf("a %s cannot be null", target.Type())}
		}
		target.SetZero()
		return nil
	}
	switch target.Kind() {
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		return set(target.Elem(), inner, given)
	case reflect.Struct:
		if target.CanAddr() {
			begin(target.Addr().Interface())
		}
		value, ok := given.(object)
		if !ok {
			return noPlace("no struct")
		}
		return fill(target, inner, value)
	case reflect.String:
		text, ok := given.(string)
		if !ok {
			return noPlace("no text")
		}
		target.SetString(text)
		return nil
	case reflect.Bool:
		flag, ok := given.(bool)
		if !ok {
			return noPlace("no truth value")
		}
		target.SetBool(flag)
		return nil
	case reflect.Slice:
		if target.Type().Elem().Kind() == reflect.Uint8 {
			text, _ := given.(string)
			data, err := hex.DecodeString(text)
			if err != nil {
				return noPlace("no hex")
			}
			target.SetBytes(data)
			return nil
		}
		elements, ok := given.([]any)
		if !ok {
			return noPlace("no list")
		}
		target.Set(reflect.MakeSlice(target.Type(), len(elements), len(elements)))
		for i, each := range elements {
			if err := set(target.Index(i), inner, each); err != nil {
				return err
			}
		}
		return nil
	case reflect.Array:
		text, _ := given.(string)
		data, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(data) != target.Len() {
			return noPlace("no uuid")
		}
		reflect.Copy(target, reflect.ValueOf(data))
		return nil
	case reflect.Float64:
		text, _ := given.(json.Number)
		float, err := text.Float64()
		if err != nil {
			return noPlace("no number")
		}
		target.SetFloat(float)
		return nil
	}
	whole, err := number(given)
	if err != nil {
		return noPlace("no whole number")
	}
	if target.CanInt() && !target.OverflowInt(whole) {
		target.SetInt(whole)
		return nil
	}
	if target.CanUint() && whole >= 0 && !target.OverflowUint(uint64(whole)) {
		target.SetUint(uint64(whole))
		return nil
	}
	return noPlace("%d is no %s", whole, target.Type())
}

func number(given any) (int64, error) {
	text, ok := given.(json.Number)
	if !ok {
		return 0, errors.New("no number")
	}
	return text.Int64()
}

func setTags(target reflect.Value, given any) error {
	place := target.FieldByName("UnknownTags")
	if !place.IsValid() {
		return noPlace("%s has no place for unknown tags", target.Type().Name())
	}
	tags := place.Addr().Interface().(*kmsg.Tags)
	listed, _ := given.([]any)
	for _, each := range listed {
		one, _ := each.(object)
		tag, err := number(one["tag"])
		text, _ := one["data"].(string)
		data, wrong := hex.DecodeString(text)
		if err != nil || wrong != nil || tag < 0 || tag > 1<<32-1 {
			return noPlace("no tag")
		}
		tags.Set(uint32(tag), data)
	}
	return nil
}

func shown(from reflect.Value, fields []field, version int16) (object, error) {
	value := object{}
	for _, each := range fields {
		if !each.known.has(version) {
			continue
		}
		out, err := show(from.Field(each.index), each, version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.name, err)
		}
		value[each.name] = out
	}
	if place := from.FieldByName("UnknownTags"); place.IsValid() {
		tags := place.Addr().Interface().(*kmsg.Tags)
		listed := []object{}
		tags.Each(func(tag uint32, data []byte) {
			listed = append(listed, object{"tag": tag, "data": hex.EncodeToString(data)})
		})
		if len(listed) > 0 {
			value["_unknownTaggedFields"] = listed
		}
	}
	return value, nil
}

func show(from reflect.Value, like field, version int16) (any, error) {
	switch from.Kind() {
	case reflect.Pointer:
		if from.IsNil() {
			return nil, nil
		}
		return show(from.Elem(), like, version)
	case reflect.Struct:
		return shown(from, like.inner, version)
	case reflect.String:
		if !utf8.ValidString(from.String()) {
			return nil, inexpressible{"utf-8", "text that is not UTF-8"}
		}
		return from.String(), nil
	case reflect.Slice:
		// Nil is also Go's empty list: it means null only where null is allowed.
		if from.IsNil() && like.nullable.has(version) {
			return nil, nil
		}
		if from.Type().Elem().Kind() == reflect.Uint8 {
			return hex.EncodeToString(from.Bytes()), nil
		}
		listed := make([]any, from.Len())
		for i := range listed {
			one, err := show(from.Index(i), like, version)
			if err != nil {
				return nil, err
			}
			listed[i] = one
		}
		return listed, nil
	case reflect.Array:
		data := make([]byte, from.Len())
		reflect.Copy(reflect.ValueOf(data), from)
		text := hex.EncodeToString(data)
		return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-"), nil
	}
	// As plain numbers: some of its types print as words.
	switch {
	case from.CanInt():
		return from.Int(), nil
	case from.CanUint():
		return from.Uint(), nil
	}
	return from.Interface(), nil
}
