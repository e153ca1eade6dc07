import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Faulty servers: /silent accepts and never answers, /half starts an answer and never ends it, /proxy answers for a
 * service that is down. All origins may read them.
 */
export async function startStrangeServer() {
  const server = createServer((request, response) => {
    response.setHeader('Access-Control-Allow-Origin', request.headers.origin ?? '*');
    response.setHeader('Access-Control-Allow-Credentials', 'true');
    if (request.url?.startsWith('/half')) {
      response.setHeader('Content-Type', 'application/json');
      response.write('[{"result":');
    }
    if (request.url?.startsWith('/proxy')) {
      response.statusCode = 502;
      response.end('<h1>Bad gateway</h1>');
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
