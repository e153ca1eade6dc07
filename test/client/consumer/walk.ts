import {
  createClient,
  type ErrorCode,
  isNetworkError,
  isServiceError,
  isTimeoutError,
  type LoginInput,
  type Profile,
  type ProfileUpdateInput,
  passwordRules,
  uploadFile,
  uploadImage,
} from 'account-client';

export interface Start {
  url: string;
  person: LoginInput;
  /** A faulty server: /silent never answers, /half never ends, /proxy answers HTML. */
  strange: string;
  /** Nothing listens there. */
  nowhere: string;
}

/** The outcome of a call, in the same words in Node and browsers. */
type Ending = ErrorCode | 'answered' | 'network' | 'timeout' | 'aborted' | string;

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function ending(call: Promise<unknown>): Promise<Ending> {
  try {
    await call;
    return 'answered';
  } catch (error) {
    if (isServiceError(error)) return error.code;
    if (isTimeoutError(error)) return 'timeout';
    if (isNetworkError(error)) return 'network';
    return error instanceof Error && /abort/i.test(error.message) ? 'aborted' : String(error);
  }
}

/** Whether progress starts at 0, ends at the total, and never decreases. */
const courseOf = (seen: number[], size: number) => ({
  starts: seen[0],
  ends: seen.at(-1) === size,
  rises: seen.every((loaded, i) => loaded >= (seen[i - 1] ?? 0)),
});

/**
 * The account flow of a front end with the client, from a wrong password to the last logout. Returns the outcome of each
 * step. Images are sent by `imageFetch`, or by the platform's means.
 */
export async function walk(
  { url, person, strange, nowhere }: Start,
  fetch: typeof globalThis.fetch,
  imageFetch?: typeof globalThis.fetch,
) {
  const isBrowser = imageFetch === undefined;
  let requests = 0;
  const counted: typeof fetch = (...request) => {
    requests += 1;
    return fetch(...request);
  };
  const client = createClient({ url, fetch: counted });
  const wrongPassword = await ending(client.auth.login.mutate({ ...person, password: 'Wrong-Password-1' }));
  const { user } = await client.auth.login.mutate(person);

  requests = 0;
  const [profile, list] = await Promise.all([client.profile.get.query(), client.users.list.query({ limit: 1 })]);
  const requestsForTwo = requests;
  requests = 0;
  await Promise.all(Array.from({ length: 11 }, () => client.health.query()));
  const requestsForEleven = requests;

  const change: ProfileUpdateInput = { bio: 'Writes about engines.', website: '' };
  const updated: Profile = (await client.profile.update.mutate(change)).user;
  const refused = await client.profile.update
    .mutate({ name: 'x' })
    .catch((error: unknown) =>
      isServiceError(error, 'VALIDATION_FAILED')
        ? { status: error.status, rule: error.details?.['name']?.rule, rules: error.details?.['name']?.rules }
        : error,
    );

  const dot = new File([Uint8Array.from(atob(png), (sign) => sign.charCodeAt(0))], 'dot.png', { type: 'image/png' });
  const sent: number[] = [];
  const images = createClient({ url, fetch: imageFetch });
  const image = await uploadImage(images, dot, { type: 'avatar', onProgress: ({ loaded }) => sent.push(loaded) });
  const leaving = new AbortController();
  setTimeout(() => leaving.abort(new Error('aborted by the user')), 50);

  const seen: number[] = [];
  const size = 2 * 1024 * 1024;
  const file = new File(['%PDF-1.7', new Uint8Array(size - 8)], 'engine.pdf', { type: 'application/pdf' });
  const stored = await uploadFile(client, file, { onProgress: ({ loaded }) => seen.push(loaded) });
  const readBack = (await (await fetch(stored.url)).arrayBuffer()).byteLength;

  return {
    wrongPassword,
    name: user.name,
    id: profile.user.id === user.id,
    listed: list.data.length,
    requestsForTwo,
    requestsForEleven,
    bio: updated.bio,
    website: updated.website,
    refused,
    image: [image.width, image.height],
    imageProgress: courseOf(sent, dot.size),
    reportsBetween: sent.length > 2 === isBrowser,
    notAnImage: await ending(uploadImage(images, new File(['x'], 'x.png', { type: 'image/png' }), { type: 'post' })),
    leftImage: await ending(
      uploadImage(createClient({ url: `${strange}/silent`, fetch: imageFetch }), dot, {
        type: 'avatar',
        signal: leaving.signal,
      }),
    ),
    weak: passwordRules.filter(({ isMet }) => !isMet('analytical-engine')).flatMap(({ rules }) => rules),
    stored: { contentType: stored.contentType, size: stored.size, readBack: readBack === size },
    progress: courseOf(seen, size),
    notTaken: await ending(uploadFile(client, new File(['<svg/>'], 'a.svg', { type: 'image/svg+xml' }))),
    logout: await ending(client.auth.logout.mutate()),
    afterLogout: await ending(client.profile.get.query()),
    noService: await ending(client.service.users.query({ ids: [user.id] })),
    nowhere: await ending(createClient({ url: nowhere, fetch }).health.query()),
    // Only in a page can the origin be refused.
    hint: await createClient({ url: nowhere, fetch })
      .health.query()
      .catch((error: unknown) => /ALLOWED_ORIGINS/.test(String(error)) === isBrowser),
    proxy: await ending(createClient({ url: `${strange}/proxy`, fetch }).health.query()),
    silent: await ending(createClient({ url: `${strange}/silent`, fetch, timeout: 300 }).health.query()),
    half: await ending(createClient({ url: `${strange}/half`, fetch, timeout: 300 }).health.query()),
    aborted: await ending(
      createClient({ url: `${strange}/silent`, fetch }).health.query(undefined, { signal: AbortSignal.timeout(50) }),
    ),
  };
}
