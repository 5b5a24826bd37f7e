package translate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/racetest"
)

// repeated are payloads as each API repeats them, with one text in each: %s is its
// JSON string, %d a count.
var repeated = map[Name][]string{
	Chat: {
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":%s},"finish_reason":null}],"obfuscation":"x%d"}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s}}],"usage":{"prompt_tokens":3,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":1}}}`,
		`{"usage":{"completion_tokens":%d,"prompt_tokens":1e1},"choices":[{"index":0,"delta":{"content":%s}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"a","function":{"name":"f","arguments":%s}}]}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s,"content":"b"}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s}}],"usage":{"completion_tokens":}}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s}}],"error":null}`,
	},
	Messages: {
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":%s}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":%s}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","name":%s}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":%s}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":%s}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":%s},"usage":{"output_tokens":%d}}`,
	},
	Gemini: {
		`{"candidates":[{"content":{"parts":[{"text":%s}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":%s,"thought":true}]}}],"usageMetadata":{"promptTokenCount":7,"thoughtsTokenCount":%d}}`,
		`{"candidates":[{"content":{"parts":[{"text":%s}]}}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":7}]}}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":%s,"args":{}}}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":%s},{"text":%s}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":%s}]},"finishReason":"MAX_TOKENS"}]}`,
	},
	Converse: {
		`{"contentBlockIndex":0,"delta":{"text":%s},"p":"abc%d"}`,
		`{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":%s}}}`,
		`{"delta":{"text":%s,"toolUse":{"input":"{"}}}`,
	},
}

// texts are what the strings are: some are empty, some are none.
var texts = []string{`"word "`, `"a"`, `"日本"`, `"a\"b\n"`, `"\ud83d\ude00"`, `""`, `null`, `7`, `"\x"`, `"\u12"`, "\"a\tb\"", `"p":"`, `"`, `{"a":"b"}`}

// TestAShapeChangesNothing compares streams that are read by their shape with the
// same ones of which each payload is read.
func TestAShapeChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := 0
	for range racetest.Some(4000) {
		from := []Name{Chat, Messages, Gemini, Converse}[random.IntN(4)]
		var events [][2]string
		form := repeated[from][0]
		for range 3 + random.IntN(12) {
			if random.IntN(4) == 0 {
				form = repeated[from][random.IntN(len(repeated[from]))]
			}
			text := texts[random.IntN(4)]
			if random.IntN(6) == 0 {
				text = texts[random.IntN(len(texts))]
			}
			data := strings.NewReplacer("%s", text, "%d", strconv.Itoa(random.IntN(200))).Replace(form)
			events = append(events, [2]string{[]string{"", "contentBlockDelta", "error"}[max(0, random.IntN(12)-9)], data})
			if from == Converse {
				events[len(events)-1][0] = "contentBlockDelta"
			}
		}
		stream := sseOf(events...)
		switch {
		case from == Converse:
			stream = awsOf(events...)
		case random.IntN(3) == 0:
			stream = strings.ReplaceAll(stream, "\n", "\r\n")
		}
		cuts := []int{random.IntN(len(stream)), random.IntN(len(stream))}
		for _, to := range clients {
			read := func(off bool) (out string, all sum, matched int) {
				s := NewStream(from, to, reply)
				s.shape.off = off
				at := 0
				for _, cut := range []int{min(cuts[0], cuts[1]), max(cuts[0], cuts[1]), len(stream)} {
					pass, look := s.Feed([]byte(stream[at:cut]))
					out, at = out+string(pass), cut
					all.add(look)
					if s.shape.n > 0 {
						matched++
					}
				}
				pass, look := s.End()
				all.add(look)
				return out + string(pass), all, matched
			}
			got, sum, matched := read(false)
			want, wantSum, _ := read(true)
			seen += matched
			if got != want || sum != wantSum {
				t.Fatalf("%v to %v of\n%s\ngives %+v\n%s\nand without shapes %+v\n%s", from, to, stream, sum, got, wantSum, want)
			}
		}
	}
	if seen < racetest.Some(4000) {
		t.Errorf("a shape was known after %d reads alone", seen)
	}
}

// What is counted is read as gjson reads it.
func TestEachCount(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"a":1,"b":{"c":2,"d":{"e":3}},"f":[4,{"g":5}],"h":"6","i":7}`, `{ "a" : 12 , "b" : 1.5e2,"c":-4, "d":null,"e":true,"f":99999999999}`,
		`{"a":1,"a":2,"x":["]",{"y":"}"}],"z":{"w":[1],"v":"\"","u":8}}`, `{"a":123456789,"b":1234567890,"c":0.9,"d":1E3,"e":0}`,
	} {
		if !gjson.Valid(text) {
			t.Fatalf("%s is no JSON", text)
		}
		var got, want []string
		eachCount([]byte(text), func(parent, name []byte, n int) { got = append(got, fmt.Sprintf("%s.%s %d", parent, name, n)) })
		gjson.Parse(text).ForEach(func(key, v gjson.Result) bool {
			if v.Type == gjson.Number {
				want = append(want, fmt.Sprintf(".%s %d", key.Str, count(v)))
			}
			if v.IsObject() {
				v.ForEach(func(inner, v gjson.Result) bool {
					if v.Type == gjson.Number {
						want = append(want, fmt.Sprintf("%s.%s %d", key.Str, inner.Str, count(v)))
					}
					return true
				})
			}
			return true
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
