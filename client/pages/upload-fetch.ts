/** `fetch` for one form that reports how much of it has been sent, 0 to 1: the browser's own cannot. */
export const uploadFetch =
  (onProgress: (share: number) => void): typeof fetch =>
  (url, { method = 'POST', headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const fail = () => reject(new TypeError('The upload was cut off'));
      request.open(method, String(url));
      for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
      request.onload = () => resolve(toResponse(request));
      request.onerror = fail;
      request.onabort = () => reject(signal?.reason);
      signal?.addEventListener('abort', () => request.abort());
      request.send(body instanceof FormData ? body : null);
    });

function toResponse(request: XMLHttpRequest): Response {
  const retryAfter = request.getResponseHeader('Retry-After');
  return new Response(request.responseText, {
    status: request.status,
    ...(retryAfter && { headers: { 'Retry-After': retryAfter } }),
  });
}
