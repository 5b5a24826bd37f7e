package arena

import (
	"strings"
	"time"
)

// NamedTalks are the loads of docs/WARM.md, at so many requests per second: chats,
// agents, hot and one-off. Duration and Seed are the caller's; ok is false for another
// name.
func NamedTalks(name string, rate float64) (t Talks, ok bool) {
	switch name {
	case "chats": // people, on eight system prompts of which few are asked for most
		t = Talks{
			Rate: rate / 6, Systems: 8, System: 1500, Zipf: 1.2, Turns: 6,
			Question: Lengths{Mean: 200}, Answer: Lengths{Mean: 250, Sigma: 0.6}, Think: 12 * time.Second,
		}
	case "agents": // they call tools and come back with what these say
		t = Talks{
			Rate: rate / 12, Systems: 4, System: 4000, Zipf: 1.2, Turns: 12,
			Question: Lengths{Mean: 900}, Answer: Lengths{Mean: 120, Sigma: 0.6}, Think: 2 * time.Second,
		}
	case "one-off": // prompts of one turn that share nothing
		t = Talks{Rate: rate, Question: Lengths{Mean: 1500}, Answer: Lengths{Mean: 250, Sigma: 0.6}}
	case "hot": // four in five share one system prompt of 16,000 tokens
		t = Talks{
			Rate: rate / 2, Systems: 2, System: 16_000, Zipf: 2.3, Turns: 2,
			Question: Lengths{Mean: 200}, Answer: Lengths{Mean: 250, Sigma: 0.6}, Think: 10 * time.Second,
		}
	default:
		return Talks{}, false
	}
	t.Pace = 40
	return t, true
}

// talkWords are what the messages of Talks are made of.
var talkWords = strings.Fields(`a able about after all also an and any as at be because before but by can could do each
for from get give go good has have he how if in into is it just know like look make many may more most new no not now of
on one only or other our out over people put say see she so some take than that the their them then there these they
think this time to two up us use want was way we well what when where which who will with work would year you`)

// Text is m's text: always the same for an ID, with four bytes for each token.
func (m Message) Text() string {
	var b strings.Builder
	size := m.Tokens * bytesPerToken
	for h := mixed64(m.ID); b.Len() < size; h = mixed64(h) {
		b.WriteString(talkWords[h%uint64(len(talkWords))])
		b.WriteByte(' ')
	}
	return b.String()[:size]
}

// Role is who says the i-th message of a conversation: system, user or assistant.
func (t Talks) Role(i int) string {
	if t.Systems > 0 {
		i--
	}
	switch {
	case i < 0:
		return "system"
	case i%2 == 0:
		return "user"
	}
	return "assistant"
}
