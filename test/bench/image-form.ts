import { photograph } from '../contract/uploads/corpus.ts';
import { call } from './client.ts';
import type { Person } from './servers.ts';

/** The form of an upload, built once, so that building it does not load the generator while it measures. */
export async function imageForm(photo?: Uint8Array) {
  const form = new FormData();
  const bytes = new Uint8Array(photo ?? (await photograph(4000, 3000, 90)));
  form.set('file', new File([bytes], 'photo.jpg', { type: 'image/jpeg' }));
  form.set('type', 'post');
  const request = new Response(form);
  const type = request.headers.get('Content-Type') ?? '';
  const body = new Uint8Array(await request.arrayBuffer());
  return (url: string, { cookie }: Person) =>
    call(`${url}/api/upload/image`, { headers: { Cookie: cookie, 'Content-Type': type }, body });
}
