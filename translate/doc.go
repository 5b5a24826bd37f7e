// Package translate carries requests and answers from one dialect of inference
// APIs to another: OpenAI's chat completions and responses, Anthropic's messages,
// Google's generateContent and Bedrock's converse.
//
// Between any two of them stands one small model. A Request is read from the
// client's dialect and written in the target's. An answer is read as Events and
// written from them, so that four readers and four writers make sixteen pairs.
// What a dialect is made of is its row in dialect.go.
//
// What the target cannot be told is a Loss with the client's own name for it. The
// caller refuses the request with the first of them, or drops them all and says
// so. What changes nothing but speed or cost, as a mark for a cache, is no loss.
//
// Text goes from answer to answer as it is written, as a quoted JSON string: it is
// neither unescaped nor escaped again. Nothing here does I/O, reads a clock or
// draws lots. A Stream or Document belongs to one goroutine; Requests are only
// read once they are made.
package translate
