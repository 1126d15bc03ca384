export function statusPage() {
  return { html: "", headers: {}, etag: "" };
}
