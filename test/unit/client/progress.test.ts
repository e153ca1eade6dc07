import { createClient, NetworkError, TimeoutError, uploadFile, uploadImage } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';
import { inTime } from '../../rig/until.ts';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** An XMLHttpRequest that gets no response body. */
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
  'an image upload that gets %i without a body rejects and does not hang',
  async (status) => {
    vi.stubGlobal('XMLHttpRequest', answering(status));
    const client = createClient({ url: 'https://accounts.example.com' });
    const image = new File(['x'], 'a.png', { type: 'image/png' });
    const sent = uploadImage(client, image, { type: 'post', onProgress: () => undefined });
    await expect(inTime(sent, { within: 5000, what: 'the upload' })).rejects.toBeInstanceOf(NetworkError);
  },
);

/** An XMLHttpRequest that sends a piece every 200 seconds, and has no answer if `stands` still after the third. */
const steady = (stands: boolean) =>
  class extends answering(200) {
    override upload: { onprogress?: (event: { loaded: number }) => void } = {};
    timeout = 0;
    ontimeout = () => undefined;
    onabort = () => undefined;
    override send() {
      if (this.timeout > 0) setTimeout(() => this.ontimeout(), this.timeout);
      for (const piece of [1, 2, 3]) setTimeout(() => this.upload.onprogress?.({ loaded: piece }), piece * 200_000);
      if (!stands) setTimeout(() => super.send(), 800_000);
    }
    abort() {
      this.onabort();
      this.onloadend();
    }
  };

/** A service whose addresses are valid for 300 seconds. */
const storing = () => {
  const presignedUrl = 'https://files.example.com/x';
  const data = { success: true, presignedUrl, publicUrl: '', key: 'uploads/x', expiresIn: 300 };
  return createClient({
    url: 'https://accounts.example.com',
    fetch: async () => Response.json({ result: { data } }),
  });
};

/** Waits with a clock of the test. */
async function after<T>(ms: number, work: Promise<T>): Promise<T> {
  const outcome = work.then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error;
    },
  );
  await vi.advanceTimersByTimeAsync(ms);
  const pending = () => {
    throw new Error('pending');
  };
  return (await Promise.race([outcome, Promise.resolve(pending)]))();
}

test('a file with progress may take longer than its address is valid; one without times out', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  const file = new File(['abc'], 'a.txt', { type: 'text/plain' });
  vi.stubGlobal('XMLHttpRequest', steady(false));
  await expect(after(801_000, uploadFile(storing(), file))).resolves.toMatchObject({ key: 'uploads/x' });
  vi.stubGlobal('XMLHttpRequest', steady(true));
  const standing = uploadFile(storing(), file);
  await expect(after(890_000, standing)).rejects.toThrow('pending');
  await expect(after(20_000, standing)).rejects.toBeInstanceOf(TimeoutError);
});

test('a file that fetch sends has the time that the service gives it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const file = new File([new Uint8Array(2_000_000)], 'a.txt', { type: 'text/plain' });
  const fetch = (_: unknown, { signal }: RequestInit = {}) =>
    new Promise<Response>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  const sent = uploadFile(storing(), file, { fetch });
  await expect(after(399_000, sent)).rejects.toThrow('pending');
  await expect(after(2000, sent)).rejects.toBeInstanceOf(TimeoutError);
});
