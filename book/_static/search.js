// Sphinx finds only pages that have all the words of a question. This ranks those that have any of them: a page has
// for each word, by how rare the word is, a part that is smaller on a long page, and more for the heading that has
// most of the words, to which the answer leads.
if (typeof Search !== "undefined") {
  const TEXT = 5, HEADING = 15, withAll = Search.performTermsSearch;
  const listed = (files) => [].concat(files ?? []);
  Search.performTermsSearch = (given, excluded) => {
    const long = [...given].filter((word) => word.length > 2), words = long.length ? long : [...given];
    const { docnames, alltitles, titles, terms } = Search._index, stemmer = new Stemmer();
    const length = docnames.map(() => 0), rare = {}, found = new Map();
    Object.values(terms).forEach((files) => listed(files).forEach((file) => { length[file] += 1; }));
    const usual = length.reduce((sum, each) => sum + each, 0) / length.length;
    for (const word of words) {
      const hits = withAll(new Set([word]), excluded);
      rare[word] = Math.log(1 + docnames.length / hits.length);
      for (const hit of hits) {
        const page = found.get(hit[0]) || { hit, score: 0, heading: 0 };
        page.score += (TEXT * rare[word] * usual) / (usual + length[docnames.indexOf(hit[0])]);
        found.set(hit[0], page);
      }
    }
    for (const [title, places] of Object.entries(alltitles)) {
      const all = splitQuery(title.toLowerCase()).map((word) => stemmer.stemWord(word)), has = new Set(all);
      const shared = words.filter((word) => has.has(word)).reduce((sum, word) => sum + rare[word], 0);
      const heading = shared / has.size ** 0.3;
      for (const [file, id] of places) {
        const page = found.get(docnames[file]);
        if (page && heading > page.heading) {
          page.heading = heading;
          page.hit[1] = titles[file].endsWith(title) ? titles[file] : `${titles[file]} > ${title}`;
          page.hit[2] = id === null ? "" : "#" + id;
        }
      }
    }
    return [...found.values()].map(({ hit, score, heading }) => [...hit.slice(0, 4), score + HEADING * heading, hit[5]]);
  };
}
