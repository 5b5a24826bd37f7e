// What the tests are told of the world that sdk_test.go has built.

export const {
  PACER_URL: pacer, // http://127.0.0.1:1234
  PACER_KEY: key, // may do everything
  PACER_NARROW_KEY: narrowKey, // route chat only, no floor above 10
  PACER_LIMITED_KEY: limitedKey, // one request a minute
  SIM_URL: sim, // the engine behind the routes chat and org/model
} = process.env;

export const messages = [{ role: "user", content: "Say something." }];

// A PNG of one pixel.
export const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export const weather = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};

async function control(faults) {
  const answer = await fetch(sim + "/sim/set", { method: "POST", body: JSON.stringify(faults) });
  if (!answer.ok) throw new Error(await answer.text());
}

// withFault runs do while the engine has a fault.
export async function withFault(name, value, healthy, run) {
  await control({ [name]: value });
  try {
    return await run();
  } finally {
    await control({ [name]: healthy });
  }
}

// withPassingFault runs do while the engine has a fault that ends by itself.
export async function withPassingFault(name, value, healthy, milliseconds, run) {
  await control({ [name]: value });
  const ended = new Promise((resolve, reject) => {
    setTimeout(() => control({ [name]: healthy }).then(resolve, reject), milliseconds);
  });
  try {
    return await run();
  } finally {
    await ended;
  }
}

export async function truth() {
  return (await fetch(sim + "/sim/truth")).json();
}
