package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/must"
)

// Datasets in the forms of the field: ShareGPT's list, vLLM's and guidellm's and
// AIPerf's lines, Alpaca's, chats, CSV, and plain text.
func TestDatasets(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []Sample
	}{
		"ShareGPT, on one line":      {"ShareGPT_V3.json", `[{"id":"QWJhYvA_0","conversations":[{"from":"human","value":"How are you?"},{"from":"gpt","value":"Fine."}]},{"id":"x","conversations":[]},{"id":"y","conversations":[{"from":"gpt","value":"An answer."},{"from":"human","value":"q"}]},{"id":"z","conversations":[{"from":"system","value":"Be brief."},{"from":"human","value":"Why?"},{"from":"gpt","value":"So."},{"from":"human","value":"And?"}]}]`, []Sample{{"How are you?", 0}, {"Be brief.\nWhy?", 0}}},
		"ShareGPT, written nicely":   {"dataset", "[\n  {\n    \"conversations\": [\n      {\"from\": \"human\", \"value\": \"a\\nb\"},\n      {\"from\": \"gpt\", \"value\": \"c\"}\n    ]\n  }\n]\n", []Sample{{"a\nb", 0}}},
		"vLLM's custom lines":        {"custom.jsonl", "{\"prompt\": \"What is the capital of India?\"}\n\n{\"prompt\": \"Long?\", \"output_tokens\": 12}\n", []Sample{{"What is the capital of India?", 0}, {"Long?", 12}}},
		"guidellm's lines":           {"g.jsonl", `{"prompt":"p","output_tokens_count":64,"prompt_tokens_count":3}` + "\r\n", []Sample{{"p", 64}}},
		"guidellm's CSV":             {"g.csv", "prompt,output_tokens_count,additional_column\r\n\"Hello, how\nare \"\"you\"\"?\",5,x\r\n,9,y\r\nshort\r\n", []Sample{{"Hello, how\nare \"you\"?", 5}, {"short", 0}}},
		"TSV":                        {"g.tsv", "id\tText\n1\ta \"b\n", []Sample{{`a "b`, 0}}},
		"AIPerf's single turns":      {"a.jsonl", `{"text":"one"}` + "\n" + `{"text":"two","delay":5}`, []Sample{{"one", 0}, {"two", 0}}},
		"AIPerf's and MT-bench's":    {"a.jsonl", `{"session_id":"s","turns":[{"text":"one"},{"text":"two"}]}` + "\n" + `{"question_id":81,"turns":["first","second"]}`, []Sample{{"one", 0}, {"first", 0}}},
		"Alpaca":                     {"alpaca.json", `[{"instruction":"Sum up.","input":"A text.","output":"x"},{"instruction":"Say hi.","input":"","output":"hi"}]`, []Sample{{"Sum up.\nA text.", 0}, {"Say hi.", 0}}},
		"chats":                      {"c.jsonl", `{"messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"U"},{"type":"image_url","image_url":{"url":"data:"}}]},{"role":"assistant","content":"A"}]}`, []Sample{{"S\nU", 0}}},
		"strings, one a line":        {"s", "\"a\\tb\"\n\"c\"\n", []Sample{{"a\tb", 0}, {"c", 0}}},
		"a list of strings":          {"s.json", `["a", "b", ""]`, []Sample{{"a", 0}, {"b", 0}}},
		"text":                       {"prompts.txt", "\xef\xbb\xbf{\"prompt\":\"stays text\"}\n\n  two  \n", []Sample{{`{"prompt":"stays text"}`, 0}, {"two", 0}}},
		"text with what begins JSON": {"prompts", "[INST] hi [/INST]\n{name} asks\n\"Quoted\" it is\n", []Sample{{"[INST] hi [/INST]", 0}, {"{name} asks", 0}, {`"Quoted" it is`, 0}}},
		"a quote first":              {"prompts", "\"Quoted\" it is\nnext\n", []Sample{{`"Quoted" it is`, 0}, {"next", 0}}},
		"lengths that are none":      {"x.jsonl", `{"prompt":"a","output_tokens":-4,"max_tokens":7}` + `{"prompt":"b","output_tokens":1e300}` + `{"prompt":"c","output_tokens":"9"}`, []Sample{{"a", 7}, {"b", mostLength}, {"c", 0}}},
	} {
		got, err := ReadDataset(c.file, strings.NewReader(c.text))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// What is no dataset is refused with what is wrong, and where.
func TestFilesThatAreNoDataset(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"nothing":              {"x", "\n \n", "no prompts"},
		"an empty list":        {"x.json", "[]", "no prompts"},
		"other fields":         {"x.jsonl", `{"id":1,"label":"x"}` + "\n" + `{"id":2}`, `"id", "label"`},
		"other columns":        {"x.csv", "id,label\n1,x\n", `"id", "label"`},
		"a broken line":        {"x.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":\"b\"\n{\"prompt\":\"c\"}\n", "line 3 is no JSON"},
		"cut":                  {"x.json", "[{\"prompt\":\"a\"},\n{\"prompt\":\"b", "line 2: the JSON ends in the middle"},
		"a list that goes on":  {"x.json", "[{\"prompt\":\"a\"}", "ends in the middle"},
		"Parquet":              {"x.parquet", "PAR1\x15\x04", "Parquet"},
		"gzip":                 {"x.jsonl.gz", "\x1f\x8b\x08\x00", "compressed"},
		"UTF-16":               {"x.txt", "\xff\xfeh\x00i\x00", "UTF-8"},
		"CSV with a bad quote": {"x.csv", "prompt\na \"b\" \"c\n", "line 2"},
		"a line without end":   {"x.txt", strings.Repeat("x", mostPrompt+1), "longer than 4 MiB"},
	} {
		got, err := ReadDataset(c.file, strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d prompts, %v; want an error with %q", name, len(got), err, c.want)
		}
	}
}

func TestADatasetIsBounded(t *testing.T) {
	var list strings.Builder
	list.WriteString("[")
	for i := range MostPrompts + 50 {
		fmt.Fprintf(&list, "{\"prompt\":\"p%d\"},", i)
	}
	list.WriteString("this is not read any more")
	got, err := ReadDataset("x.json", strings.NewReader(list.String()))
	if err != nil || len(got) != MostPrompts || got[MostPrompts-1].Text != "p99999" {
		t.Errorf("%d prompts, %v", len(got), err)
	}
}

// Answers are as long as the dataset says, unless --output is given.
func TestALengthOfADataset(t *testing.T) {
	for given, want := range map[bool][]int{false: {9, 256, 2}, true: {256, 256, 256}} {
		lengths := must.Get(arena.ParseLengths("fixed:256"))(t)
		o := Options{Prompt: lengths, Output: lengths, OutputGiven: given, Dataset: []Sample{{"a", 9}, {"b", 0}, {"c", 1}}}
		var got []int
		for i := range 3 {
			got = append(got, o.request(rand.New(rand.NewPCG(1, 1)), i).MaxTokens)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with --output given %v: %v, want %v", given, got, want)
		}
	}
}

func FuzzReadDataset(f *testing.F) {
	f.Add("x.json", `[{"conversations":[{"from":"human","value":"q"}]}]`)
	f.Add("x.csv", "prompt,output_tokens\na,3\n")
	f.Add("x", "{\"prompt\":\"a\"}\ntext\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		got, err := ReadDataset(name, strings.NewReader(text))
		if (len(got) > 0) == (err != nil) {
			t.Fatalf("%d prompts and %v", len(got), err)
		}
		for _, s := range got {
			if strings.TrimSpace(s.Text) == "" || s.Output < 0 || s.Output > mostLength {
				t.Fatalf("%+v", s)
			}
		}
	})
}
