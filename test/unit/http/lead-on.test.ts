import type { Context } from 'koa';
import { expect, test } from 'vitest';
import { leadTo } from '../../../server/http/lead-on.ts';

const ours = {
  origins: new Set(['https://accounts.example.com', 'https://app.example.com']),
  acceptsLoopbackOrigins: false,
};

/** What a request to accounts.example.com gets that is led to a location. */
function led(location: string, mode = 'navigate') {
  const answer: { status?: number; body?: string; location?: string } = {};
  const ctx = Object.assign(answer, {
    host: 'accounts.example.com',
    type: '',
    get: (name: string) => (name === 'Sec-Fetch-Mode' ? mode : ''),
    redirect: (to: string) => {
      answer.location = to;
    },
  });
  leadTo(ctx as unknown as Context, location, ours);
  return answer;
}

test.each([
  ['a page of ours', '/dashboard', 'navigate'],
  ['a page of ours with its origin', 'https://accounts.example.com/dashboard', 'navigate'],
  ['a foreign origin', 'https://evil.example.org/', 'navigate'],
  ['a front end, by a call', 'https://app.example.com/', 'cors'],
])('to %s it is a redirect', (_, location, mode) => {
  expect(led(location, mode)).toMatchObject({ location });
  expect(led(location, mode).status).toBeUndefined();
});

test('a navigation to a front end on another origin is a page that leads there', () => {
  const { status, body = '', location } = led('https://app.example.com/a?b=1&c=</script>"');
  expect([status, location]).toEqual([200, undefined]);
  expect(body).toContain(
    '<meta http-equiv="refresh" content="0;url=https://app.example.com/a?b=1&amp;c=%3C/script%3E%22">',
  );
  expect(body).toContain('location.replace("https://app.example.com/a?b=1&c=%3C/script%3E%22")');
  expect(body.match(/<\/script>/g)).toHaveLength(1);
});
