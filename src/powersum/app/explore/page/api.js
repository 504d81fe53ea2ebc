// Requests to the server that this page came from; each carries the token of the page's address.

const token = new URLSearchParams(location.search).get("token") || "";
const headers = { "X-Powersum-Token": token, "Content-Type": "application/json" };

async function checked(response) {
  if (response.ok) return response;
  let message = "the server answered " + response.status;
  try {
    message = (await response.json()).error || message;
  } catch {
    // No JSON: the number says enough.
  }
  throw new Error(message);
}

async function fetched(path, options = {}) {
  let response;
  try {
    response = await fetch("/api/" + path, { headers, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer: has powersum explore ended?");
  }
  return checked(response);
}

export const get = async (path) => (await fetched(path)).json();

export const post = async (path, data, signal) =>
  (await fetched(path, { method: "POST", body: JSON.stringify(data), signal })).json();

export const reportAddress = (run) => "/api/report/" + run + "?token=" + encodeURIComponent(token);

export const pageAddress = (link) => location.origin + location.pathname + location.search + (link ? "#" + link : "");

/** Server-sent events of a request: calls `hear(kind, data)` for each until the stream ends. */
export async function listen(path, data, signal, hear) {
  const response = await fetched(path, { method: "POST", body: JSON.stringify(data), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const field = (name) => lines.find((line) => line.startsWith(name + ": "))?.slice(name.length + 2);
      const kind = field("event");
      if (kind) hear(kind, JSON.parse(field("data")));
    }
  }
}
