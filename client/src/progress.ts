export type OnProgress = (progress: { loaded: number; total: number }) => void;

/** Progress listeners by form, because tRPC passes no call options on to `fetch`. */
export const listeners = new WeakMap<object, OnProgress>();

/** `fetch` for a form with a progress listener, by XMLHttpRequest: in browsers nothing else reports upload progress. */
export const fetchWithProgress =
  (onProgress: OnProgress): typeof fetch =>
  (url, { method = 'POST', headers, body, signal, credentials } = {}) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) throw signal.reason;
      const request = new XMLHttpRequest();
      const abort = () => request.abort();
      request.open(method, String(url));
      for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value);
      request.withCredentials = credentials === 'include';
      request.upload.onprogress = ({ loaded, total }) => onProgress({ loaded, total });
      request.onload = () => resolve(responseOf(request));
      request.onerror = () => reject(new TypeError('The form could not be sent'));
      request.onabort = () => reject(signal?.reason);
      request.onloadend = () => signal?.removeEventListener('abort', abort);
      signal?.addEventListener('abort', abort);
      request.send(body instanceof FormData ? body : null);
    });

function responseOf(request: XMLHttpRequest): Response {
  const retryAfter = request.getResponseHeader('Retry-After');
  const headers = new Headers(retryAfter ? { 'Retry-After': retryAfter } : {});
  // A body is refused with a status that has none, such as 204.
  return new Response(request.responseText || null, { status: request.status, headers });
}
