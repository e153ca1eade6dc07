import { createClient, NetworkError, uploadImage } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';
import { inTime } from '../../rig/until.ts';

afterEach(() => vi.unstubAllGlobals());

/** A request of a browser that is answered without a body. */
const answering = (status: number) =>
  class {
    upload = {};
    status = status;
    responseText = '';
    onload = () => undefined;
    onloadend = () => undefined;
    open() {}
    setRequestHeader() {}
    getResponseHeader = () => null;
    send() {
      setImmediate(() => {
        this.onload();
        this.onloadend();
      });
    }
  };

// Fetch has no body with some of these.
test.each([200, 204, 205, 304])(
  'an image whose form gets %i without a body is refused, and does not hang',
  async (status) => {
    vi.stubGlobal('XMLHttpRequest', answering(status));
    const client = createClient({ url: 'https://accounts.example.com' });
    const image = new File(['x'], 'a.png', { type: 'image/png' });
    const sent = uploadImage(client, image, { type: 'post', onProgress: () => undefined });
    await expect(inTime(sent, { within: 5000, what: 'the upload' })).rejects.toBeInstanceOf(NetworkError);
  },
);
