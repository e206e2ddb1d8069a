// Sphinx finds only pages that have all the words of a question. This ranks those that have any of them: a page has
// for each word, by how rare the word is, a part that is smaller on a long page, and more for the heading, or the entry
// of the index, that has most of the words, to which the answer leads. What is only a list comes after what explains.
if (typeof Search !== "undefined") {
  const TEXT = 5, HEADING = 15, LIST = 0.7, LISTS = /appendix\/(api|messages|settings)/, withAll = Search.performTermsSearch;
  const listed = (files) => [].concat(files ?? []);
  Search.performTermsSearch = (given, excluded) => {
    const long = [...given].filter((word) => word.length > 2), words = long.length ? long : [...given];
    const { docnames, alltitles, indexentries, titles, terms } = Search._index, stemmer = new Stemmer();
    const length = docnames.map(() => 0), rare = {}, found = new Map();
    Object.values(terms).forEach((files) => listed(files).forEach((file) => { length[file] += 1; }));
    const usual = length.reduce((sum, each) => sum + each, 0) / length.length;
    for (const word of words) {
      const hits = withAll(new Set([word]), excluded);
      rare[word] = Math.log(1 + docnames.length / Math.max(1, hits.length));
      for (const hit of hits) {
        const page = found.get(hit[0]) || { hit, score: 0, heading: 0 };
        page.score += (TEXT * rare[word] * usual) / (usual + length[docnames.indexOf(hit[0])]);
        found.set(hit[0], page);
      }
    }
    for (const [title, places] of [...Object.entries(alltitles), ...Object.entries(indexentries)]) {
      const said = splitQuery(title.toLowerCase()).filter((word) => !stopwords.includes(word));
      const has = new Set(said.map((word) => stemmer.stemWord(word)));
      const shared = words.filter((word) => has.has(word)).reduce((sum, word) => sum + rare[word], 0);
      const heading = shared / has.size ** 0.3;
      for (const [file, id, main] of places) {  // an entry of the index has a mark that says whether it is a main one
        const page = found.get(docnames[file]);
        if (page && heading > page.heading && (main === undefined || (main && id.startsWith("index-")))) {
          page.heading = heading;
          page.hit[1] = titles[file].endsWith(title) ? titles[file] : `${titles[file]} > ${title}`;
          page.hit[2] = id === null ? "" : "#" + id;
        }
      }
    }
    return [...found.values()].map(({ hit, score, heading }) => {
      const part = LISTS.test(hit[0]) ? LIST : 1;
      return [...hit.slice(0, 4), part * (score + HEADING * heading), hit[5]];
    });
  };
}
